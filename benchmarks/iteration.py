"""An iteration of the program beside the same agents in one process, and beside parts of itself.

    python benchmarks/iteration.py [--repeats 7] [--iterations 40]

Every repetition runs, one after the other, (a) one MPI job of ten agents that does in turn SE and
GT over shared memory, over messages and by hand (``by_hand.py``), and SE without messages, its
gradients and steps alone, and with every round done twice; (b) a simulation of the same ten agents
in one process with the same gradients, which mixes as well, with one and with two threads, as many
iterations as the job does of each.  Prints the ratios of each repetition's seconds per iteration:
median and spread, as JSON and as a table.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import torch
from reporting import SETTINGS, report, spread
from workload import TEN, TURNS, WARM_UP, algorithm, ring, task

from sundsbo_mpi.heap import prepare_heap

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition import Composed
    from sundsbo_mpi.tasks.base import Task

HERE = Path(__file__).resolve().parent
RATIOS = {
    "SE / one process, one thread": ("se shared", "one thread"),
    "SE / one process, two threads": ("se shared", "two threads"),
    "gradients and steps in ten processes / one process, one thread": ("se apart", "one thread"),
    "SE by hand / one process, one thread": ("se by hand", "one thread"),
    "SE by hand, watched / one process, one thread": ("se by hand, watched", "one thread"),
    "SE by hand / one process, two threads": ("se by hand", "two threads"),
    "SE by hand, watched / one process, two threads": ("se by hand, watched", "two threads"),
    "SE shared / SE by hand": ("se shared", "se by hand"),
    "SE shared / SE by hand, watched": ("se shared", "se by hand, watched"),
    "SE shared / SE without exchange": ("se shared", "se alone"),
    "SE by hand, watched / SE without exchange": ("se by hand, watched", "se alone"),
    "SE messages / SE without exchange": ("se messages", "se alone"),
    "SE by hand / gradients and steps in ten processes": ("se by hand", "se apart"),
    "GT shared / SE shared": ("gt shared", "se shared"),
    "GT by hand / SE by hand": ("gt by hand", "se by hand"),
    "GT shared / GT by hand": ("gt shared", "gt by hand"),
    "SE of two rounds / SE, shared": ("se twice shared", "se shared"),
    "GT messages / SE messages": ("gt messages", "se messages"),
    "SE of two rounds / SE, messages": ("se twice messages", "se messages"),
}


def simulate(iterations: int, threads: int) -> float:
    """Run the agents of SUN-DSBO-SE in this process; return the seconds of an iteration."""
    torch.set_num_threads(threads)
    prepare_heap()
    method = algorithm("sun-dsbo-se", TEN, iterations)
    tasks = [task(agent) for agent in range(TEN)]
    W = torch.from_numpy(ring(TEN).matrix.toarray()).float()
    w = method.start(tasks[0])[0]
    lengths = [len(v) for v in w.values()]
    points = torch.cat(tuple(w.values())).repeat(TEN, 1)
    moved = torch.empty_like(points)
    for k in range(-WARM_UP, iterations):
        if k == 0:
            began = time.perf_counter()
        for own, s, target in zip(tasks, points, moved, strict=True):
            step(method, own, k, s.split_with_sizes(lengths), target.split_with_sizes(lengths))
        torch.mm(W, moved, out=points)
    return (time.perf_counter() - began) / iterations


def step(method: Composed, own: Task, k: int, at: Sequence[Tensor], out: Sequence[Tensor]) -> None:
    """Write where one agent's own direction leads, before any mixing."""
    w = dict(zip(method.step_sizes, at, strict=True))
    D = method.direction(own, w, own.sample(max(k, 0)), max(k, 0))
    for (v, s), place in zip(w.items(), out, strict=True):
        torch.sub(s, D[v], alpha=method.step_sizes[v](0), out=place)


def measure(iterations: int) -> dict[str, float]:
    """Run everything once, each in processes of its own."""
    found = launch(TEN, iterations)
    for threads, name in ((1, "one thread"), (2, "two threads")):
        words = [sys.executable, __file__, "--threads", threads, "--iterations", TURNS * iterations]
        found[name] = read(words)
    return found


def launch(agents: int, iterations: int, *more: str) -> dict[str, float]:
    """Run the MPI job."""
    mpirun = Path(sys.executable).parent / "mpirun"
    job = [mpirun, "-n", agents, sys.executable, "-m", "mpi4py", HERE / "in_mpi.py"]
    return read([*job, "--iterations", iterations, *more])


def read(words: list[object]) -> Any:
    """Run a program, one thread per process unless it asks for more; read the JSON it prints."""
    said = subprocess.check_output(list(map(str, words)), text=True, env=os.environ | SETTINGS)
    return json.loads(said.splitlines()[-1])


@click.command()
@click.option("--repeats", default=7, show_default=True)
@click.option("--iterations", default=40, show_default=True, help="Of a turn in the job.")
@click.option("--threads", type=int, help="Only simulate in this process, with so many threads.")
def main(repeats: int, iterations: int, threads: int | None) -> None:
    """Compare seconds per iteration."""
    if threads:
        print(json.dumps(simulate(iterations, threads)))
        return
    rounds = [measure(iterations) for _ in range(repeats)]
    found = {name: spread([r[a] / r[b] for r in rounds]) for name, (a, b) in RATIOS.items()}
    used = dict.fromkeys(name for pair in RATIOS.values() for name in pair)
    milliseconds = {f"{name}, ms": spread([1e3 * r[name] for r in rounds]) for name in used}
    report("iteration", found, milliseconds)


if __name__ == "__main__":
    main()
