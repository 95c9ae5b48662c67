"""Programs of the package, started as a user does: their run files, and what they said."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from sundsbo_mpi.runfile import read_run

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
SIGNALS_APART = 2.5
"""Seconds; a signal that comes sooner is the first once more."""
TIME_LIMIT = 300
"""Seconds for one program; a hang is a failure."""


class FailedError(Exception):
    """A program did not do what it should."""


@dataclass(frozen=True)
class Programs:
    """Starts programs of the package.

    Args:
        ranks: Agents, on a ring.
        device: What is compared with the CPU, "cuda" or "cpu".
        iterations: Of every run.
        folder: Where files may be left.
    """

    ranks: int
    device: str
    iterations: int
    folder: Path
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def ring(self) -> Path:
        """The topology, written when it is first asked for."""
        path = self.folder / "ring.txt"
        if not path.exists():
            make = (BIN / "sundsbo-mpi", "topology", "ring", "--agents", str(self.ranks))
            subprocess.run([*make, "-o", path], check=True, stdout=subprocess.DEVNULL)
        return path

    def new(self) -> Path:
        """Return the name of a file that is not there."""
        return self.folder / f"{next(self._numbers)}.h5"

    def start(self, *words: str | Path) -> tuple[int, str]:
        """Start all ranks; return their exit status and what they said on standard error."""
        process = subprocess.Popen(
            [ROOT / "launch" / "local.sh", str(self.ranks), *words],
            env=os.environ | {"BIN": str(BIN)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        try:
            said = process.communicate(timeout=TIME_LIMIT)[1]
        except subprocess.TimeoutExpired:
            for _ in range(2):  # the first asks the run to stop, the second ends it
                process.terminate()
                time.sleep(SIGNALS_APART)
            process.communicate()
            raise FailedError(
                f"not over after {TIME_LIMIT} s: {' '.join(map(str, words))}"
            ) from None
        return process.returncode, said

    def run(self, device: str, *words: str) -> Path:
        """Run a method on a device; return its run file."""
        output = self.new()
        code, said = self.start(*self.words(device, output), *words)
        if code:
            raise FailedError(f"exit {code}, {sentence(said)}")
        used = set(read_run(output).agents_info["device"])
        if not all(name.startswith(device) for name in used):
            raise FailedError(f"computed on {', '.join(sorted(used))} in place of {device}")
        return output

    def words(self, device: str, output: Path) -> tuple[str | Path, ...]:
        """Return what all runs are started with."""
        every = max(1, self.iterations // 10)
        sizes = ("--iterations", str(self.iterations), "--eval-every", str(every))
        return ("--topology", self.ring, "--device", device, "--output", output, *sizes)


def sentence(said: str) -> str:
    """Return the program's own sentence, or else the last thing that was said."""
    lines = [line.strip("\0 ") for line in said.splitlines() if line.strip("\0 ")]
    own = [line for line in lines if line.startswith("sundsbo-mpi: ")]
    return [*(lines[-1:] or ["nothing said"]), *own][-1]


def card() -> str:
    """Return the names and drivers of the GPUs, as the driver's own program tells them."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return "; ".join(subprocess.check_output(query, text=True).splitlines())
    except (OSError, subprocess.CalledProcessError):
        return "unknown: no nvidia-smi"


def visible() -> bool:
    """Tell whether torch can use a GPU."""
    import torch

    return torch.cuda.is_available()
