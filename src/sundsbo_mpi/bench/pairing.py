"""Which neighbours can be timed at once: turns that spare each pair the others' traffic."""

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


def turns(pairs: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give every pair a turn, (P,), the same wherever it is called with the same arguments.

    The pairs of a turn have no agent in common, and those of them that cross from one node to
    another have no node in common either: each has its nodes' ways to the network for itself.  A
    pair within a node shares its turn with any other pair that has neither of its agents.

    Greedy, crossing pairs first: at least d and at most 2 d - 1 turns, where d is the largest
    number of pairs of an agent or of crossing pairs of a node.

    Args:
        pairs: As ``pairs_of`` returns them, (P, 2).
        nodes: The node of every agent, (n,).
    """
    crossing = nodes[pairs[:, 0]] != nodes[pairs[:, 1]]
    taken: defaultdict[tuple[str, int], int] = defaultdict(int)  # its bit t: busy in turn t
    found = np.empty(len(pairs), dtype=np.int64)
    for place in np.argsort(~crossing, kind="stable"):
        pair = pairs[place]
        needed = [("agent", agent) for agent in pair.tolist()]
        needed += [("node", node) for node in nodes[pair].tolist() if crossing[place]]
        busy = 0
        for one in needed:
            busy |= taken[one]
        lowest_free = ~busy & (busy + 1)
        found[place] = lowest_free.bit_length() - 1
        for one in needed:
            taken[one] |= lowest_free
    return found
