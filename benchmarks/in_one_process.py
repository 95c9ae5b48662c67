"""The simulation of iteration.py: ten agents of SUN-DSBO-SE in one process.

    python benchmarks/in_one_process.py --socket PATH [--threads 1]

Their gradients are those of the program's agents; all average at once, as a product of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import torch
from jobs import measured, serve, to_serve
from workload import TEN, WARM_UP, algorithm, ring, task

from sundsbo_mpi.heap import prepare_heap

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition import Composed
    from sundsbo_mpi.tasks.base import Task


def simulation(threads: int) -> Callable[[int], None]:
    """Return what does iterations of the agents of SUN-DSBO-SE in this process."""
    torch.set_num_threads(threads)
    prepare_heap()
    method = algorithm("sun-dsbo-se", TEN, WARM_UP)
    tasks = [task(agent) for agent in range(TEN)]
    W = torch.from_numpy(ring(TEN).matrix.toarray()).float()
    w = method.start(tasks[0])[0]
    lengths = [len(v) for v in w.values()]
    points = torch.cat(tuple(w.values())).repeat(TEN, 1)
    moved = torch.empty_like(points)

    def iterate(iterations: int) -> None:
        for k in range(iterations):
            for own, s, target in zip(tasks, points, moved, strict=True):
                step(method, own, k, s.split_with_sizes(lengths), target.split_with_sizes(lengths))
            torch.mm(W, moved, out=points)

    return iterate


def step(method: Composed, own: Task, k: int, at: Sequence[Tensor], out: Sequence[Tensor]) -> None:
    """Write where one agent's own direction leads, before any mixing."""
    w = dict(zip(method.step_sizes, at, strict=True))
    D = method.direction(own, w, own.sample(k), k)
    for (v, s), place in zip(w.items(), out, strict=True):
        torch.sub(s, D[v], alpha=method.step_sizes[v](0), out=place)


@click.command()
@click.option("--iterations", default=40, show_default=True, help="Of a turn.")
@click.option("--threads", default=1, show_default=True)
@to_serve
def main(iterations: int, threads: int, path: Path) -> None:
    """Do a few iterations to warm up, and then some whenever it is told to."""
    iterate = simulation(threads)
    iterate(WARM_UP)
    serve(path, lambda _name: measured(iterate, iterations))


if __name__ == "__main__":
    main()
