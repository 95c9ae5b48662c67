"""Exchanging agents of two groups until fewer links join the groups (Kernighan and Lin, 1970)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array, csr_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

PATIENCE = 50
"""Exchanges in a row, none of which leads to fewer links than there were, after which to stop."""
PAIRS_TRIED = 100
"""Pairs of groups up to which all that are linked are tried, not just those that promise a gain."""
MOST_SWEEPS = 5


def refined(graph: csr_array, group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return groups of the same sizes with at most as many links between them; agent 0 stays.

    Args:
        graph: (n, n) numbers of links, symmetric, zero diagonal.
        group: The group of every agent, (n,), from 0.
    """
    group = group.copy()
    moving = set(range(int(group.max()) + 1))
    for _ in range(MOST_SWEEPS):
        before = group.copy()
        for one, other in _pairs(graph, group):
            if moving.isdisjoint((one, other)):
                continue
            agents = np.flatnonzero((group == one) | (group == other))
            part, left = graph[agents][:, agents], group[agents] == one
            left = refined_halves(part, left, pinned=bool(agents[0] == 0))
            group[agents] = np.where(left, one, other)
        moved = group != before
        moving = {*group[moved].tolist(), *before[moved].tolist()}
    return group


def _pairs(graph: csr_array, group: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the pairs of linked groups, the smaller number first, that are worth a try."""
    links = coo_array(graph)
    ends = group[links.row], group[links.col]
    linked = np.unique(np.column_stack(ends)[ends[0] < ends[1]], axis=0)
    if len(linked) > PAIRS_TRIED:
        gain = _gains(graph, group)
        linked = linked[gain[linked[:, 0], linked[:, 1]] + gain[linked[:, 1], linked[:, 0]] > 0]
    return [(int(one), int(other)) for one, other in linked]


def _gains(graph: csr_array, group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return by how many links between groups some agent of g would save in h, at (g, h)."""
    agents, count = len(group), int(group.max()) + 1
    member = csr_array((np.ones(agents), (np.arange(agents), group)), shape=(agents, count))
    to = coo_array(graph @ member)
    inside = np.zeros(agents)
    own = to.col == group[to.row]
    inside[to.row[own]] = to.data[own]
    gain = np.full((count, count), -np.inf)
    for alone in range(count):
        gain[alone] = -inside[group == alone].min()
    np.maximum.at(gain, (group[to.row], to.col), to.data - inside[to.row])
    return gain


def refined_halves(
    graph: csr_array, left: NDArray[np.bool_], *, pinned: bool = False
) -> NDArray[np.bool_]:
    """Return a part of the same size with at most as many links to the rest.

    Args:
        graph: (m, m) numbers of links, symmetric, zero diagonal.
        left: Who belongs to the part, (m,).
        pinned: Whether number 0 stays where it is.
    """
    while True:
        exchanges = _best_exchanges(graph, left, int(pinned))
        if not exchanges:
            return left
        left = left.copy()
        for pair in exchanges:
            left[pair] = ~left[pair]


def _best_exchanges(graph: csr_array, left: NDArray[np.bool_], first: int) -> list[list[int]]:
    """Exchange the best pairs that have not been, be it at a loss, and return what gained most."""
    sign = np.where(left, 1.0, -1.0)
    # What an agent gains by changing sides: its links to the other side less those to its own.
    gain = -sign * (graph @ sign)
    here, there = np.where(left, gain, -np.inf), np.where(left, -np.inf, gain)
    here[:first] = there[:first] = -np.inf
    exchanges: list[list[int]] = []
    total = best = 0.0
    kept = 0
    for _ in range(min(np.count_nonzero(left[first:]), np.count_nonzero(~left[first:]))):
        a = int(np.argmax(here))
        to, links = _row(graph, a)
        there[to] -= 2 * links  # a pair that is linked stays linked across
        b = int(np.argmax(there))
        total += here[a] + there[b]
        there[to] += 2 * links
        exchanges.append([a, b])
        here[a] = there[b] = -np.inf
        for changed in (a, b):
            to, links = _row(graph, changed)
            turn = 2 * sign[changed] * links
            here[to] += turn
            there[to] -= turn
        if total > best:
            best, kept = total, len(exchanges)
        elif len(exchanges) - kept >= PATIENCE:
            break
    return exchanges[:kept]


def _row(graph: csr_array, i: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    span = slice(graph.indptr[i], graph.indptr[i + 1])
    return graph.indices[span], graph.data[span]
