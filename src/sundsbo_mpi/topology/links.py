"""From links between agents to shares that sum to one: the rules for weighting a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array, eye_array

from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def adjacency(agents: int, pairs: NDArray[np.int64]) -> csr_array:
    """Return the (n, n) matrix of zeros and ones of an undirected graph without loops.

    Args:
        agents: The number n of agents.
        pairs: The two ends of every edge, (E, 2), in any order and any number of times.
    """
    i, j = pairs[pairs[:, 0] != pairs[:, 1]].T
    ones = np.ones(2 * i.size)
    counts = csr_array(
        (ones, (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(agents, agents)
    )
    counts.sum_duplicates()
    counts.data[:] = 1
    return counts


def metropolis(graph: csr_array) -> csr_array:
    """Return the Metropolis-Hastings weights w_ij = 1/(1 + max(d_i, d_j)) of a graph's edges.

    An agent keeps the rest, w_ii = 1 - Σ_j w_ij >= 1/(1 + d_i), so that ρ < 1 on any connected
    graph (Xiao, Boyd and Kim, 2007).

    Args:
        graph: (n, n) zeros and ones, symmetric, zero diagonal; d_i is the sum of row i.
    """
    degrees = np.diff(graph.indptr)
    edges = coo_array(graph)
    shares = 1 / (1 + np.maximum(degrees[edges.row], degrees[edges.col]))
    return with_rest(csr_array((shares, (edges.row, edges.col)), shape=graph.shape))


def with_rest(shares: csr_array) -> csr_array:
    """Return the matrix with w_ii = 1 - Σ_j w_ij put on the zero diagonal of ``shares``."""
    return csr_array(shares + diags_array(1 - np.asarray(shares.sum(axis=1))))


def halved(matrix: csr_array) -> csr_array:
    """Return the lazy matrix (I + W)/2, whose eigenvalues are (1 + λ)/2."""
    return csr_array((eye_array(matrix.shape[0], format="csr") + matrix) / 2)


def weighted(graph: csr_array, edge_weight: float | None) -> csr_array:
    """Return w_ij = ``edge_weight`` for every edge, or the Metropolis-Hastings weights if None."""
    return metropolis(graph) if edge_weight is None else with_rest(edge_weight * graph)


def circulant_weights(
    agents: int, offsets: Sequence[int], self_weight: float | None, edge_weight: float | None
) -> csr_array:
    """Return w_ii = a plus, for each of m offsets o, b = (1 - a)/(2m) for i + o and for i - o.

    Links that coincide modulo n add up, and those that lead back to i add to w_ii, so that every
    row and column sums to one whatever n is.

    Args:
        agents: The number n of agents.
        offsets: The m offsets.
        self_weight: The share a; one half where neither a nor b is given.
        edge_weight: The weight b, which makes a = 1 - 2mb.

    Raises:
        UsageError: Both a and b are given.
    """
    if self_weight is not None and edge_weight is not None:
        raise UsageError(
            f"got self-weight {self_weight:g} and edge weight {edge_weight:g}, expected one of "
            "them since it fixes the other; leave one out."
        )
    links = 2 * len(offsets)
    a = 0.5 if self_weight is None else self_weight
    a, b = (a, (1 - a) / links) if edge_weight is None else (1 - links * edge_weight, edge_weight)
    i = np.repeat(np.arange(agents), links)
    j = (i + np.tile(np.concatenate([offsets, np.negative(offsets)]), agents)) % agents
    shares = csr_array((np.full(i.size, b), (i, j)), shape=(agents, agents))
    return csr_array(shares + a * eye_array(agents, format="csr"))
