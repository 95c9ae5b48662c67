"""How far the clocks of different hosts are apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from mpi4py import MPI

QUESTIONS = 20
TAG = 77


class Alignment(NamedTuple):
    """Of one rank's clock with rank 0's, in seconds."""

    offset: float
    """To be added to this rank's times."""
    accuracy: float
    """How wrong the offset may be: half of the shortest time from question to answer."""


def align(
    comm: MPI.Intracomm, hosts: Sequence[int], now: Callable[[], float] = time.perf_counter
) -> Alignment:
    """Compare each host's clock with that of rank 0's; collective.

    Rank 0 asks one rank of every other host for its time, several times, and believes the answer
    that came fastest: it was given halfway between question and arrival, to within half of the time
    between the two.  Ranks of one host read the same clock, so that nothing is asked there.

    Args:
        comm: All ranks.
        hosts: For every rank the lowest rank of its host.
        now: The clock.

    Source: Cristian (1989), "Probabilistic clock synchronization".
    """
    table = np.zeros((comm.size, 2))
    for asked in sorted(set(hosts) - {hosts[0]}):
        if comm.rank == 0:
            table[asked] = min((_ask(comm, asked, now) for _ in range(QUESTIONS)), key=_accuracy)
        elif comm.rank == asked:
            for _ in range(QUESTIONS):
                comm.Recv(np.empty(0), source=0, tag=TAG)
                comm.Send(np.array([now()]), dest=0, tag=TAG)
    comm.Bcast(table, root=0)
    return Alignment(*table[hosts[comm.rank]].tolist())


def _ask(comm: MPI.Intracomm, asked: int, now: Callable[[], float]) -> Alignment:
    theirs = np.empty(1)
    began = now()
    comm.Send(np.empty(0), dest=asked, tag=TAG)
    comm.Recv(theirs, source=asked, tag=TAG)
    ended = now()
    return Alignment((began + ended) / 2 - float(theirs[0]), (ended - began) / 2)


def _accuracy(found: Alignment) -> float:
    return found.accuracy
