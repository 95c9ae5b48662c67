"""What a weight matrix must satisfy, and the sentences that say where one does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

RHO_BELOW = 1 - 1e-12
MOST_WEIGHTS = 2**26
"""Whose rows, columns and checks take a few gigabytes."""


def canonical(matrix: Any, name: str, *, connects: bool = True) -> tuple[csr_array, float]:
    """Return the matrix as float64 rows without stored zeros, and the tolerance its dtype earns.

    Args:
        matrix: Dense or sparse, of any real dtype.
        name: What the matrix is called in messages.
        connects: Whether it must connect all agents, and so have enough entries for it.

    Raises:
        UsageError: It is not a square matrix of real numbers, or has too few for its size or more
            than ``MOST_WEIGHTS``.
    """
    if np.ndim(matrix) != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise UsageError(
            f"'{name}' is {_shape(matrix)}, a weight matrix is n x n with n >= 1; "
            "give a square matrix, or name the format of a list of edges with --format edges."
        )
    if matrix.dtype.kind not in "biuf":
        raise UsageError(
            f"'{name}' has entries of type {matrix.dtype}, expected real numbers; "
            "save the matrix as float64."
        )
    _require_enough(matrix, name, connects)
    tolerance = 1e-5 if matrix.dtype == np.float32 else 1e-6
    exact = csr_array(matrix, dtype=np.float64, copy=True)
    exact.sum_duplicates()
    exact.eliminate_zeros()
    exact.sort_indices()
    if max(exact.nnz, exact.shape[0]) < 2**31:  # half the bytes when W is sent to all ranks
        exact.indices = exact.indices.astype(np.int32)
        exact.indptr = exact.indptr.astype(np.int32)
    return exact, tolerance


def _require_enough(matrix: Any, name: str, connects: bool) -> None:
    agents = matrix.shape[0]
    dense = isinstance(matrix, np.ndarray)
    # Some formats of SciPy count entries that they have no data for.
    entries = int(np.count_nonzero(matrix) if dense else min(matrix.nnz, matrix.data.size))
    if entries > MOST_WEIGHTS:
        raise UsageError(
            f"'{name}' has {entries:,} weights, expected at most {MOST_WEIGHTS:,}; give fewer "
            "agents or fewer links."
        )
    # Rows take memory even where they are empty, so this comes before they are laid out.
    if connects and not dense and entries < 2 * (agents - 1):
        raise UsageError(
            f"bad weights '{name}': there are {entries} entries for {agents} agents, expected "
            f"at least {2 * (agents - 1)}, without which no graph is connected; correct the size "
            "of the matrix, or add the missing edges."
        )


def require_structure(matrix: csr_array, name: str, tolerance: float) -> None:
    """Refuse W unless it is finite, non-negative, symmetric, doubly stochastic and connected.

    Args:
        matrix: (n, n) float64 with sorted rows and no stored zeros.
        name: What the matrix is called in messages.
        tolerance: By how much sums may miss one, and w_ij may miss w_ji.

    Raises:
        UsageError: Names the worst entry, row or column, the first of these laws that fails.
    """
    _signs(matrix, name)
    _symmetry(matrix, name, tolerance)
    _sums(matrix, name, tolerance)
    _connection(matrix, name)


def require_doubly_stochastic(matrix: csr_array, name: str, tolerance: float) -> None:
    """Refuse a matrix of a sequence unless it is finite, non-negative and doubly stochastic.

    Args:
        matrix: (n, n) float64 with sorted rows and no stored zeros.
        name: What the matrix is called in messages.
        tolerance: By how much sums may miss one.

    Raises:
        UsageError: Names the worst entry, row or column.
    """
    _signs(matrix, name)
    _sums(matrix, name, tolerance)


def require_together(matrices: Sequence[csr_array], rho: float, name: str) -> None:
    """Refuse a sequence unless a period of its matrices connects all agents and contracts.

    Args:
        matrices: The matrices of a period.
        rho: The shrinkage of the disagreement by a period.
        name: What the sequence is called in messages.

    Raises:
        UsageError: Their graphs together are not connected, or ρ is one.
    """
    _connection(csr_array(sum(matrices[1:], matrices[0])), name)
    if rho >= RHO_BELOW:
        raise UsageError(
            f"bad weights '{name}': rho = {rho:.12g} over the period of {len(matrices)}, expected "
            "rho < 1; give the agents self-weights, for instance by (I + W)/2."
        )


def require_contraction(rho: float, lambda_min: float, name: str) -> None:
    """Refuse W unless ρ < 1: gossip must shrink every disagreement.

    Args:
        rho: max(|λ_2|, |λ_n|).
        lambda_min: λ_n.
        name: What the matrix is called in messages.

    Raises:
        UsageError: ρ is one, as for a two-coloured graph whose agents keep nothing of their own.
    """
    if rho >= RHO_BELOW:
        raise UsageError(
            f"bad weights '{name}': rho = {rho:.12g} (smallest eigenvalue {lambda_min:.12g}), "
            "expected rho < 1; give the agents self-weights, for instance by (I + W)/2."
        )


def _shape(matrix: Any) -> str:
    sizes = np.shape(matrix)
    if len(sizes) == 0:
        return "a single number"
    return f"a vector of {sizes[0]}" if len(sizes) == 1 else " x ".join(map(str, sizes))


def _signs(matrix: csr_array, name: str) -> None:
    entries = coo_array(matrix)
    odd = np.flatnonzero(~np.isfinite(entries.data))
    worst = odd[0] if odd.size else np.argmin(entries.data) if entries.nnz else None
    if worst is not None and not 0 <= entries.data[worst] < np.inf:
        i, j = entries.row[worst], entries.col[worst]
        raise UsageError(
            f"bad weights '{name}': the entry in row {i}, column {j} is "
            f"{entries.data[worst]:.10g}, expected finite numbers >= 0 (rows count from 0); "
            "correct the matrix."
        )


def _symmetry(matrix: csr_array, name: str, tolerance: float) -> None:
    gap = coo_array(abs(matrix - matrix.T))
    # A weight that only one of two agents has, however small, would be a message nobody expects.
    pattern = matrix.astype(bool).astype(np.int8)
    one_sided = coo_array(abs(pattern - pattern.T))
    one_sided.eliminate_zeros()
    if gap.nnz and gap.data.max() > tolerance:
        worst = int(np.argmax(gap.data))
        i, j = int(gap.row[worst]), int(gap.col[worst])
    elif one_sided.nnz:
        i, j = int(one_sided.row[0]), int(one_sided.col[0])
    else:
        return
    raise UsageError(
        f"bad weights '{name}': the entry in row {i}, column {j} is {matrix[i, j]:.10g} but the "
        f"one in row {j}, column {i} is {matrix[j, i]:.10g}, expected a symmetric "
        "matrix (rows count from 0); correct the matrix, or give one whose links are directed as "
        "an .npy of shape (1, n, n)."
    )


def _sums(matrix: csr_array, name: str, tolerance: float) -> None:
    for line, axis in (("row", 1), ("column", 0)):
        sums = np.asarray(matrix.sum(axis=axis))
        worst = int(np.argmax(abs(sums - 1)))
        if abs(sums[worst] - 1) > tolerance:
            raise UsageError(
                f"bad weights '{name}': {line} {worst} sums to {sums[worst]:.10g}, expected 1 "
                f"within {tolerance:g} ({line}s count from 0); {_remedy(matrix.data)}."
            )


def _remedy(values: NDArray[np.float64]) -> str:
    if values.size and np.all(values == 1):
        return (
            "this looks like an adjacency matrix: save the graph as GraphML, GML or a list of "
            "edges to have it weighted"
        )
    return "correct the matrix, with all digits of every entry"


def _connection(matrix: csr_array, name: str) -> None:
    from scipy.sparse.csgraph import connected_components

    parts, labels = connected_components(matrix, directed=False)
    if parts > 1:
        # The smallest part is the one that was most likely forgotten.
        smallest = int(np.argmin(np.bincount(labels)))
        lost = int(np.flatnonzero(labels == smallest)[0])
        raise UsageError(
            f"bad weights '{name}': the graph falls into {parts} parts, row {lost} belongs to one "
            f"of {np.sum(labels == smallest)} (rows count from 0), expected a connected graph; "
            "add the missing edges."
        )
