"""One direction of SUN-DSBO beside its matrix products alone, and beside its plain form.

    python benchmarks/gradient.py [--repeats 31] [--times 10]

Hyper-cleaning with a network 784-300-10, 50 training and 50 validation samples, x of 50,000 numbers
(``workload``), one thread.  Each repetition times, one after the other: the matrix products that
the direction consists of, with results put where they have been put before; the sums of regulariser
and proximal term, to which they are added; the direction as a run computes it
(``HyperCleaning.saddle``), and that of one sample and one unit, which is little but the calls to
torch; the direction from the task's two losses by autograd; and the drawing of a minibatch.  The
ratios are those within a repetition, of the thread's CPU time and of the wall clock: median and
spread, as JSON and as a table.  Products, sums and calls together are roughly what a direction
needs of torch on the machine at hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click
import numpy as np
import torch
from reporting import report, spread
from workload import FEATURES, task

from sundsbo_mpi.composition.directions import sun
from sundsbo_mpi.heap import prepare_heap
from sundsbo_mpi.tasks.saddle import ridge_and_proximal

if TYPE_CHECKING:
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning
    from sundsbo_mpi.tasks.labelled import Batch

PENALTY = {"mu": 0.1, "gamma": 0.1}
PRODUCTS, NEEDED, DIRECTION = "matrix products", "products, sums and calls", "direction"
Work = dict[str, Callable[[], object]]


def products(rows: int, widths: tuple[int, ...]) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield the factors and the place of the result of each product for one point."""
    values = [torch.randn(rows, width) for width in widths]
    slopes = [torch.randn(rows, width) for width in widths]
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        weight = torch.randn(outputs, inputs)
        yield values[layer], weight.t(), values[layer + 1]
        yield slopes[layer + 1].t(), values[layer], torch.empty(outputs, inputs)
        if layer > 0:
            yield slopes[layer + 1], weight, slopes[layer]


def point(own: HyperCleaning) -> tuple[Batch, Variables]:
    """Return a minibatch, and where to differentiate."""
    x, y = own.start()
    return own.sample(0), {"x": x, "y": y, "theta": y + 0.001 * torch.randn_like(y)}


def works() -> Work:
    """Return what is timed, by name."""
    own, numbers = task(0), count(1)
    batch, w = point(own)
    plain = SimpleNamespace(upper=own.upper, lower=own.lower)
    least = task(0, batch=1, hidden=1)
    one, at = point(least)
    widths = (FEATURES, (len(w["y"]) - own.classes) // (FEATURES + 1 + own.classes), own.classes)
    rows = len(batch.labels), len(batch.train_labels)
    multiplied = [product for each in rows for product in products(each, widths)]

    def multiply() -> None:
        for left, right, result in multiplied:
            torch.mm(left, right, out=result)

    def multiply_sum_and_call() -> None:
        multiply()
        ridge_and_proximal(w["y"], w["theta"], 2 * own.alpha, PENALTY["gamma"])
        sun(least, at, one, **PENALTY)

    return {
        PRODUCTS: multiply,
        NEEDED: multiply_sum_and_call,
        DIRECTION: lambda: sun(own, w, batch, **PENALTY),
        "direction from the losses": lambda: sun(plain, w, batch, **PENALTY),
        "minibatch": lambda: own.sample(next(numbers)),
    }


def seconds(work: Callable[[], object], times: int) -> np.ndarray:
    """Return CPU and wall seconds of one of several calls."""
    work()
    began = time.thread_time(), time.perf_counter()
    for _ in range(times):
        work()
    ended = time.thread_time(), time.perf_counter()
    return np.subtract(ended, began) / times


@click.command()
@click.option("--repeats", default=31, show_default=True)
@click.option("--times", default=10, show_default=True, help="Calls in a repetition.")
def main(repeats: int, times: int) -> None:
    """Measure."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    prepare_heap()
    work = works()
    found = [{name: seconds(each, times) for name, each in work.items()} for _ in range(repeats)]
    figures = {}
    for place, clock in enumerate(("CPU", "wall")):
        at = {name: np.array([each[name][place] for each in found]) for name in work}
        for name, taken in at.items():
            figures[f"{name}, {clock} ms"] = spread(1e3 * taken)
        for name in tuple(work)[1:]:
            figures[f"{name} / {PRODUCTS}, {clock}"] = spread(at[name] / at[PRODUCTS])
        for beside in (NEEDED, "direction from the losses"):
            figures[f"{DIRECTION} / {beside}, {clock}"] = spread(at[DIRECTION] / at[beside])
    report("gradient", figures)


if __name__ == "__main__":
    main()
