"""The rules that weight the edges of a given graph, from one pass over the edges to an optimum."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, eye_array

from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.topology.links import adjacency, metropolis, with_rest
from sundsbo_mpi.topology.spectrum import both_ends
from sundsbo_mpi.topology.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sundsbo_mpi.topology.mixing import Mixing

LARGEST_PROGRAMME = 64
"""Agents for whom ``fastest`` takes less than a minute and a gigabyte."""
NEGLIGIBLE = 1e-7
"""Weights that the solver leaves below this are zero: the edge carries nothing."""


def best_constant(graph: csr_array) -> csr_array:
    """Return W = I - α L with the α that makes ρ smallest, L the graph's Laplacian.

    α = 2/(λ_1(L) + λ_{n-1}(L)), from the largest and the smallest eigenvalue but for the zero.

    Source: Xiao and Boyd, 2004, "Fast linear iterations for distributed averaging".

    Differences from the source:
        1. α is at most 1/d_max, so that no agent has a negative weight; ρ is convex in α, so that
           this is the best of those.

    Args:
        graph: (n, n) zeros and ones, symmetric, zero diagonal.

    Raises:
        UsageError: The eigenvalues of so large a graph are not found.
    """
    degrees = np.asarray(graph.sum(axis=1))
    if not degrees.any():
        return csr_array(eye_array(graph.shape[0], format="csr"))
    # I - L/d_max has eigenvalues 1 - λ(L)/d_max; where λ_2 is 1 the graph is not connected.
    second, smallest = both_ends(with_rest(graph / degrees.max()))
    return with_rest(graph * (min(2 / (2 - second - smallest), 1) / degrees.max()))


def fastest(graph: csr_array) -> csr_array:
    """Return the symmetric doubly stochastic W on the graph's edges with the smallest ρ.

    minimise ‖W - 11ᵀ/n‖₂ over w >= 0 on the edges, with w_ii = 1 - Σ_j w_ij >= 0: the fastest
    mixing Markov chain (Boyd, Diaconis and Xiao, 2004), a semidefinite programme.

    Args:
        graph: (n, n) zeros and ones, symmetric, zero diagonal.

    Raises:
        UsageError: There are more than ``LARGEST_PROGRAMME`` agents, cvxpy is not installed, or
            its solver found no solution.
    """
    agents = graph.shape[0]
    if agents > LARGEST_PROGRAMME:
        raise UsageError(
            f"got {agents} agents, expected at most {LARGEST_PROGRAMME} for fastest-mixing "
            "weights; take --rule best-constant."
        )
    i, j = np.nonzero(np.triu(graph.toarray(), 1))
    if not i.size:
        return csr_array(eye_array(agents, format="csr"))
    ends = np.eye(agents)[:, i] - np.eye(agents)[:, j]
    solved = _fastest_shares(ends)
    found = np.where(solved > NEGLIGIBLE, solved, 0.0)
    found /= max(1.0, (abs(ends) @ found).max())  # the solver may miss a sum of one by a little
    both = np.concatenate([i, j]), np.concatenate([j, i])
    return with_rest(csr_array((np.tile(found, 2), both), shape=graph.shape))


def _fastest_shares(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the edges' weights of ``fastest``, to the solver's accuracy.

    Args:
        ends: (n, edges), column by column 1 and -1 at the ends of an edge.
    """
    try:
        import cvxpy as cp
    except ImportError as error:
        raise UsageError(
            "the fastest-mixing weights need cvxpy, which is not installed; "
            "install it with: pip install 'sundsbo-mpi[optimise]'."
        ) from error
    agents, edges = ends.shape
    shares, rho = cp.Variable(edges, nonneg=True), cp.Variable()
    off_average = np.eye(agents) - 1 / agents - ends @ cp.diag(shares) @ ends.T
    bound = rho * np.eye(agents)
    programme = cp.Problem(
        cp.Minimize(rho),
        [bound + off_average >> 0, bound - off_average >> 0, abs(ends) @ shares <= 1],
    )
    with contextlib.suppress(cp.SolverError):
        programme.solve(solver=cp.CLARABEL)
    if shares.value is None:
        raise UsageError(
            f"no fastest-mixing weights were found for {agents} agents "
            f"({programme.status or 'the solver failed'}), expected a solution; take another "
            "--rule."
        )
    return np.asarray(shares.value)


RULES: dict[str, Callable[[csr_array], csr_array]] = {
    "metropolis": metropolis,
    "best-constant": best_constant,
    "fastest": fastest,
}


def reweighted(mixing: Mixing, rule: str) -> Weights:
    """Return new weights for the graph of a matrix.

    Args:
        mixing: One symmetric matrix, of which only the edges count.
        rule: One of ``RULES``.

    Raises:
        UsageError: The rule is unknown or cannot be applied, or there is no one symmetric matrix.
    """
    if rule not in RULES:
        raise unknown("rule", rule, RULES)
    if not (mixing.steady and mixing.symmetric):
        raise UsageError(
            f"'{mixing.name}' has no one undirected graph, expected one to give new weights to; "
            "leave --rule out."
        )
    graph = adjacency(mixing.agents, mixing.edges())
    return Weights(RULES[rule](graph), f"{mixing.name}, {rule}")
