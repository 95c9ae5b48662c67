"""Jobs that stay up and measure when they are told to, so that variants of their own take turns.

A rank of a user's run holds one agent, and so should one that is measured: several in one process
share its memory and its caches.  To start all jobs anew for every repetition would take minutes,
in which the machine becomes another.  So they are started once; between its turns a job waits for a
line on a socket, which takes no time of any core.
"""

from __future__ import annotations

import json
import mmap
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import click
import numpy as np
from reporting import SETTINGS

from sundsbo_mpi.batch.starting import mpirun

HERE = Path(__file__).resolve().parent
PATIENCE = 600
"""Seconds: more means that a process will never be there, never answer, or never end."""
COLD = 5
"""Iterations at the start of a turn that are not measured: others have had the caches."""
NO_MPI_YET = {"MPI4PY_RC_INITIALIZE": "0"}
"""The program starts MPI itself, with its own settings."""
SCATTERED = 3 * 2**30
"""Bytes of free memory that may lie in small pieces."""
Measured = tuple[float, float]
"""Seconds of an iteration, and processor seconds of one process in it."""
to_serve = click.option(
    "--socket", "path", type=Path, required=True, help="Where to hear whose turn it is."
)


class Job:
    """Processes that measure when they are told to.

    Args:
        words: What starts them all; ``--socket PATH`` is added, which they hand to ``serve``.
        processes: How many of them.
    """

    def __init__(self, words: Iterable[object], processes: int = 1) -> None:
        with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
            path = Path(folder, "socket")
            listening.bind(str(path))
            listening.listen(processes)
            listening.settimeout(1)
            self._process = subprocess.Popen(
                [*map(str, words), "--socket", str(path)],
                stdin=subprocess.DEVNULL,
                env=os.environ | SETTINGS | NO_MPI_YET,
            )
            deadline = time.monotonic() + PATIENCE
            self._lines = [self._accepted(listening, deadline) for _ in range(processes)]

    def _accepted(self, listening: socket.socket, deadline: float) -> TextIOWrapper:
        while True:
            with suppress(TimeoutError):
                end, _ = listening.accept()
                break
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._end()
        with end:  # what is made of it keeps it open
            end.settimeout(PATIENCE)
            return end.makefile("rw")

    def measure(self, name: str) -> Measured:
        """Let all processes do a variant; return the mean of what they measured."""
        for lines in self._lines:
            print(name, file=lines, flush=True)
        seconds, processor = np.mean(
            [json.loads(lines.readline()) for lines in self._lines], axis=0
        )
        return seconds, processor

    def close(self) -> None:
        """Let the processes end, one way or the other."""
        for lines in self._lines:
            with suppress(OSError):  # it has ended, and what was to be said to it is void
                lines.close()
        with suppress(subprocess.TimeoutExpired):
            if self._process.wait(PATIENCE) == 0:
                return
        self._end()

    def _end(self) -> NoReturn:
        self._process.terminate()
        raise SystemExit(f"a job failed, with exit status {self._process.wait()}")


def in_mpi(agents: int, iterations: int, names: Sequence[str]) -> Job:
    """Start the MPI job of ``in_mpi.py`` with these variants."""
    job = [mpirun(), "-n", agents, sys.executable, "-m", "mpi4py", HERE / "in_mpi.py"]
    only = [word for name in names for word in ("--only", name)]
    return Job([*job, "--iterations", iterations, *only], agents)


def take_scattered_pages() -> mmap.mmap:
    """Return memory in small pages, while which is held nobody gets what is scattered."""
    taken = mmap.mmap(-1, SCATTERED)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        taken.madvise(mmap.MADV_NOHUGEPAGE)
    for page in range(0, SCATTERED, mmap.PAGESIZE):
        taken[page] = 1
    return taken


def serve(path: Path, measure: Callable[[str], Measured]) -> None:
    """Measure whatever the job is told to, until nobody is there to tell it."""
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(str(path))
        with end.makefile("rw") as lines:
            for line in lines:
                print(json.dumps(measure(line.rstrip())), file=lines, flush=True)


def measured(
    iterate: Callable[[int], object], iterations: int, meet: Callable[[], object] = lambda: None
) -> Measured:
    """Do iterations, which all processes begin and end together where they ``meet``."""
    iterate(COLD)
    meet()
    began, worked = time.perf_counter(), time.process_time()
    iterate(iterations)
    worked = time.process_time() - worked
    meet()
    return (time.perf_counter() - began) / iterations, worked / iterations
