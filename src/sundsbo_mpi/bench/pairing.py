"""Which neighbours can be timed at once: rounds in which every agent has at most one partner."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pairs_of(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs i < j of which one sends to the other, (P, 2), lexicographic."""
    if not len(edges):
        return np.empty((0, 2), dtype=np.int64)
    return np.unique(np.sort(edges, axis=1), axis=0)


def turns(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give every pair a turn, (P,), such that the pairs of one turn have no agent in common.

    Greedy: at most 2 d - 1 turns where d is the largest number of partners.
    """
    taken: defaultdict[int, set[int]] = defaultdict(set)
    found = np.empty(len(pairs), dtype=np.int64)
    for place, (i, j) in enumerate(pairs.tolist()):
        busy = taken[i] | taken[j]
        turn = next(t for t in range(len(busy) + 1) if t not in busy)
        found[place] = turn
        taken[i].add(turn)
        taken[j].add(turn)
    return found
