"""Which agents share a node, so that few links lead from one node to another.

The agents are divided into groups of the nodes' sizes, by recursive bisection along the graph's
second eigenvector (Pothen, Simon and Liou, 1990) and, where they are not too many, from the order
at hand too.  Each division is refined by exchanging agents of two groups (Kernighan and Lin, 1970),
and the better one is taken.

Differences from the sources:
    1. The parts of a bisection are as large as the nodes ask, and agents only change places in
       pairs, so that sizes are exact.
    2. Of more than ``EIGENVECTOR_UP_TO`` agents the order of a breadth-first search takes the place
       of the eigenvector's.
    3. Of the best pair of agents, the first is the one that gains most by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from sundsbo_mpi.topology.exchanging import refined, refined_halves

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from sundsbo_mpi.topology.mixing import Mixing

EIGENVECTOR_UP_TO = 600
"""Agents whose eigenvectors take a tenth of a second."""
IN_ORDER_UP_TO = 2000
"""Agents for whom exchanging takes a second from any division, good or bad."""


def crossing(mixing: Mixing, nodes: Sequence[int]) -> int:
    """Count the links between agents on different nodes.

    Args:
        mixing: The weights, of which the links count that are ever used: pairs of agents, or
            ordered pairs where a W_k is not symmetric.
        nodes: For every agent a number of its node.
    """
    node = np.asarray(nodes)
    return _crossing(mixing.edges(), node) // (1 + mixing.symmetric)


def _crossing(edges: NDArray[np.int64], node: NDArray[np.int64]) -> int:
    return int(np.count_nonzero(node[edges[:, 0]] != node[edges[:, 1]]))


def grouped(mixing: Mixing, nodes: Sequence[int]) -> tuple[int, ...]:
    """Choose the agent of every rank, never with more links between nodes than agent i on rank i.

    Agent 0 stays on rank 0.  The same arguments give the same choice, which is agent i on rank i
    where that is as good.
    Where every two agents are linked at one time or another, no choice is better than another.

    Args:
        mixing: The weights, of which the links count that are ever used.
        nodes: For every rank a number of its node.
    """
    names, at_hand = np.unique(np.asarray(nodes), return_inverse=True)
    agents = np.arange(mixing.agents)
    if len(names) == 1 or not mixing.matrices:
        return tuple(agents.tolist())
    edges = mixing.edges()
    ones = np.ones(len(edges))
    links = csr_array((ones, (edges[:, 0], edges[:, 1])), shape=(mixing.agents,) * 2)
    graph = csr_array(links + links.T)
    found = [_divided(graph, np.bincount(at_hand), int(at_hand[0]))]
    if mixing.agents <= IN_ORDER_UP_TO:
        found.append(at_hand)
    tried = [at_hand, *(refined(graph, each) for each in found)]
    best = min(tried, key=lambda division: _crossing(edges, division))  # of equals the first
    if best is not at_hand:
        agents[np.argsort(at_hand, kind="stable")] = np.argsort(best, kind="stable")
    return tuple(agents.tolist())


def _divided(graph: csr_array, sizes: NDArray[np.int64], home: int) -> NDArray[np.int64]:
    """Return the group of every agent by recursive bisection.

    Args:
        graph: (n, n) numbers of links, symmetric, zero diagonal.
        sizes: The number of agents in every group.
        home: The group of agent 0.
    """
    group = np.zeros(graph.shape[0], dtype=np.int64)
    waiting = [(np.arange(len(group)), 0, len(sizes))]
    while waiting:
        agents, first, last = waiting.pop()
        if last - first == 1:
            group[agents] = first
            continue
        before = np.cumsum(sizes[first:last])
        middle = int(np.argmin(abs(2 * before[:-1] - before[-1])))
        cut = first + middle + 1
        part = graph[agents][:, agents]
        size = before[middle]
        if home < cut:
            left = _end_with_first(_order(part), size)
        else:
            left = ~_end_with_first(_order(part), len(agents) - size)
        left = refined_halves(part, left, pinned=bool(agents[0] == 0))
        waiting += [(agents[left], first, cut), (agents[~left], cut, last)]
    return group


def _end_with_first(order: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Return so many from either end of a line, or from within, that number 0 is among them."""
    at = int(np.flatnonzero(order == 0)[0])
    start = 0 if at < size else min(at, len(order) - size)
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[start : start + size]] = True
    return chosen


def _order(graph: csr_array) -> NDArray[np.int64]:
    """Return the agents in a line such that neighbours are near to one another."""
    if graph.shape[0] > EIGENVECTOR_UP_TO:
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        return np.asarray(reverse_cuthill_mckee(graph, symmetric_mode=True), dtype=np.int64)
    laplacian = np.diag(np.asarray(graph.sum(axis=1))) - graph.toarray()
    second = np.linalg.eigh(laplacian)[1][:, 1]
    return np.argsort(second.round(9), kind="stable")
