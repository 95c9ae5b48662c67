"""The measurements of a bench, one kind after the other; everything is collective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.bench.cases import EXCHANGE, ITEMSIZE, ROUND, Ground, averaging, of_network
from sundsbo_mpi.bench.pairing import pairs_of, turns
from sundsbo_mpi.bench.parts import ALL
from sundsbo_mpi.bench.timing import Case, Times, gathered, interleaved
from sundsbo_mpi.comm.bare import NOBODY, BarePair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sundsbo_mpi.bench.parts import Part
    from sundsbo_mpi.bench.record import Key, Series

PAIR_REPEATS = 10
"""At most, of the timing of a pair: every neighbour of the busiest agent takes a turn, and
so does every pair that leads from the busiest node to others."""


def measure_series(
    ground: Ground, networks: Mapping[str, Part], sizes: Sequence[int]
) -> dict[Key, Series] | None:
    """Time rounds and exchanges of every size on every network, and what is beside them.

    Returns, on rank 0, the seconds of all ranks.
    """
    taken: dict[Key, list[NDArray[np.float64]]] = {}
    for name, part in networks.items():
        for size in sizes:
            with of_network(ground, part, name, size // ITEMSIZE) as cases:
                times = interleaved(cases, ground.repeats, ground.tally)
            for key, case in cases.items():
                if name == ALL and case.network:
                    ground.carried.note(key.transport, key.buffers, case.network)
            for key, own in _split(times).items():
                taken.setdefault(key, []).append(own)
    found = {key: gathered(np.stack(rows), ground.tally) for key, rows in taken.items()}
    return {key: series for key, series in found.items() if series is not None} or None


def _split(times: Mapping[Key, Times]) -> dict[Key, NDArray[np.float64]]:
    """Return seconds by what they are about; a round also tells of its exchange."""
    found = {key: own.whole for key, own in times.items()}
    exchanges = {
        key._replace(what=EXCHANGE): own.exchange for key, own in times.items() if key.what == ROUND
    }
    return found | exchanges


def measure_iterations(
    ground: Ground, part: Part, messages: Sequence[tuple[int, ...]]
) -> dict[tuple[str, str], NDArray[np.float64]] | None:
    """Time the rounds of iterations that send messages of these bytes, one after the other.

    Returns, on rank 0, by transport and buffers the seconds of the slowest rank, one per entry of
    ``messages``.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for sizes in messages:
        # One after the other: together their buffers would fill the shared memory.
        with ExitStack() as to_close:
            cases = averaging(ground, part, [size // ITEMSIZE for size in sizes], to_close)
            times = interleaved(cases, ground.repeats, ground.tally)
        for way, case in cases.items():
            if case.network:
                ground.carried.note(*way, case.network)
            series = gathered(times[way].whole[np.newaxis], ground.tally)
            if series is not None:
                found.setdefault(way, []).append(float(series.slowest[0]))
    return {key: np.array(seconds) for key, seconds in found.items()} or None


def measure_pairs(
    ground: Ground, edges: NDArray[np.int64], sizes: Sequence[int]
) -> dict[str, NDArray[Any]] | None:
    """Time every pair of neighbours, with the shortest and the longest message.

    Who is timed at the same time is as ``turns`` says; all other agents wait.  Returns, on rank 0,
    the columns of ``Bench.pairs``.
    """
    pairs, agent = pairs_of(edges), ground.tally.agent
    turn_of = turns(pairs, np.array(ground.local.nodes))
    seconds = np.full((2, len(pairs)), np.nan)
    for turn in range(turn_of.max(initial=-1) + 1):
        mine = np.flatnonzero((turn_of == turn) & (pairs == agent).any(axis=1))
        partner = int(pairs[mine[0]].sum()) - agent if mine.size else NOBODY
        for row, size in enumerate((min(sizes), max(sizes))):
            pair = BarePair(ground.local.comm, partner, size // ITEMSIZE)
            repeats = min(ground.repeats, PAIR_REPEATS)
            (times,) = interleaved({"pair": Case(pair.swap)}, repeats, ground.tally).values()
            seconds[row, mine] = np.median(times.whole)
    everyone = ground.tally.stack(seconds.ravel())
    if everyone is None:
        return None
    # Both agents of a pair have measured it.
    latency, longest = np.fmax.reduce(everyone.reshape(ground.tally.agents, 2, len(pairs)))
    return {
        "first": pairs[:, 0],
        "second": pairs[:, 1],
        "latency_s": latency,
        "bandwidth": max(sizes) / longest,
    }
