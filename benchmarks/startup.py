"""From mpirun to the end of the first iteration, beside bare imports of torch and mpi4py.

    python benchmarks/startup.py [--agents 10] [--repeats 5]

Every repetition starts, one after the other, (a) ten processes that import torch and mpi4py and
meet in a barrier, and (b) the program with its defaults (hyper-cleaning of the digits), and takes
the seconds from the start of mpirun to the word of rank 0 that the barrier, or the first iteration
with the two evaluations around it, is over.  The CPU seconds of one process that only imports
hardly depend on what else the machine does.  Python may keep what it has compiled, as it does for
every installed package; a first start of each, which is not measured, lets it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from reporting import SETTINGS, report, spread

from sundsbo_mpi.batch.starting import mpirun
from sundsbo_mpi.comm import openmpi

BIN = Path(sys.executable).parent
BARE = """
import torch
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    print("first", flush=True)
"""
IMPORTS = {
    "torch and mpi4py": "import torch; from mpi4py import MPI",
    "the program": "from sundsbo_mpi.cli.beginning import loading\n"
    "with loading(): import sundsbo_mpi.running.run",
}
ENVIRONMENT = os.environ | SETTINGS | openmpi.LIBFABRIC
"""Without Open MPI's second of sleep, which the program avoids and bare imports would not."""
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)
OURS = ("--iterations", "1", "--eval-every", "1", "--output", "run.h5", "--overwrite")


def seconds_until(word: str, command: list[str | Path], folder: str) -> float:
    """Start a command; return when it has said a word, after it has ended."""
    began = time.perf_counter()
    with subprocess.Popen(
        list(map(str, command)),
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        said, heard = [], None
        for line in process.stdout:
            said.append(line)
            if heard is None and word in line:
                heard = time.perf_counter() - began
    if heard is None or process.returncode:
        raise SystemExit("".join(said))
    return heard


def cpu_seconds(statement: str) -> float:
    """Return the CPU seconds of a process that only imports."""
    code = f"{statement}\nimport os; t = os.times(); print(t.user + t.system)"
    return float(subprocess.check_output([sys.executable, "-c", code], env=ENVIRONMENT))


@click.command()
@click.option("--agents", default=10, show_default=True)
@click.option("--repeats", default=5, show_default=True)
def main(agents: int, repeats: int) -> None:
    """Start everything in turn."""
    launch = [mpirun(), "-n", str(agents)]
    bare, ours = [], []
    cpu: dict[str, list[float]] = {name: [] for name in IMPORTS}
    with tempfile.TemporaryDirectory() as folder:
        ring = ["topology", "ring", "--agents", str(agents), "-o", "ring.npz"]
        subprocess.run([BIN / "sundsbo-mpi", *ring], cwd=folder, check=True, capture_output=True)
        run = [BIN / "sundsbo-mpi", "--topology", "ring.npz", *OURS]
        for _ in range(1 + repeats):
            bare.append(seconds_until("first", [*launch, sys.executable, "-c", BARE], folder))
            ours.append(seconds_until("iteration 1/1:", [*launch, *run], folder))
            for name, statement in IMPORTS.items():
                cpu[name].append(cpu_seconds(statement))
    bare, ours, cpu = bare[1:], ours[1:], {name: values[1:] for name, values in cpu.items()}
    ratios = {
        "first iteration / bare imports": [b / a for a, b in zip(bare, ours, strict=True)],
        "CPU of imports / of bare imports": [b / a for a, b in zip(*cpu.values(), strict=True)],
    }
    seconds = {"s, bare imports": bare, "s, first iteration": ours}
    report(
        "start-up",
        {name: spread(values) for name, values in ratios.items()},
        {name: spread(values) for name, values in seconds.items()},
        {f"CPU s, {name}": spread(values) for name, values in cpu.items()},
    )


if __name__ == "__main__":
    main()
