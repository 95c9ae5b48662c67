"""Taking times on all ranks: warm-up, barriers, and cases that take turns within every repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from sundsbo_mpi.bench.record import Series

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sundsbo_mpi.clock import Clock
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.comm.transports.exchange import Connection

K = TypeVar("K")

BATCH_SECONDS = 1e-3
"""What is faster is done several times between two looks at the clock."""
LARGEST_BATCH = 64


class Case(NamedTuple):
    """Something to be timed: all ranks call ``run`` together."""

    run: Callable[[], object]
    clock: Clock | None = None
    """Of the exchanges in ``run``, where it does more than exchange."""
    network: Connection | None = None
    """What the exchanges travel over, where a transport was asked for."""


class Times(NamedTuple):
    """This rank's seconds for one run of a case in every repeat, (repeats,)."""

    whole: NDArray[np.float64]
    exchange: NDArray[np.float64]
    """Of the whole, what the case's clock counted as posting and waiting; zero without a clock."""


def interleaved(cases: Mapping[K, Case], repeats: int, tally: Tally) -> dict[K, Times]:
    """Time the cases one after the other, all of them in every repeat; collective.

    What disturbs the machine for a while so disturbs all of them.  Every second repeat takes them
    in the opposite order.  A barrier comes before each.
    """
    batches = {name: _warm_up(case, tally) for name, case in cases.items()}
    found = {name: np.empty((2, repeats)) for name in cases}
    for repeat in range(repeats):
        for name in list(cases)[:: 1 if repeat % 2 == 0 else -1]:
            tally.barrier()
            found[name][:, repeat] = _timed(cases[name], batches[name])
    return {name: Times(*values) for name, values in found.items()}


def _warm_up(case: Case, tally: Tally) -> int:
    """Run a case more and more times in a row, until that takes ``BATCH_SECONDS`` on some rank.

    Returns the number, the same on all ranks.
    """
    batch = 1
    while True:
        tally.barrier()
        seconds, _ = _timed(case, batch)
        quick = tally.smallest(int(batch * seconds < BATCH_SECONDS))
        if not quick or batch >= LARGEST_BATCH:
            return batch
        batch *= 2


def _timed(case: Case, batch: int) -> tuple[float, float]:
    before = _exchanging(case)
    began = time.perf_counter()
    for _ in range(batch):
        case.run()
    seconds = time.perf_counter() - began
    return seconds / batch, (_exchanging(case) - before) / batch


def _exchanging(case: Case) -> float:
    if case.clock is None:
        return 0.0
    return case.clock.seconds["post"] + case.clock.seconds["wait"]


def gathered(times: NDArray[np.float64], tally: Tally) -> Series | None:
    """Bring all ranks' seconds together on rank 0; collective.

    Args:
        times: This rank's, by size and repeat, (S, repeats).
        tally: All ranks.
    """
    rows = tally.stack(times.ravel())
    if rows is None:
        return None
    everyone = rows.reshape(tally.agents, *times.shape)
    return Series(
        median=np.median(everyone, axis=2).T,
        p95=np.percentile(everyone, 95, axis=2).T,
        slowest=np.median(everyone.max(axis=0), axis=1),
    )
