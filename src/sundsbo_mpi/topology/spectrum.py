"""The two ends of the spectrum of W that matter, for ten agents as for ten thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.sparse import csc_array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

DENSE_UP_TO = 1200


def extremes(matrix: csr_array) -> tuple[float, float]:
    """Return ρ = max(|λ_2|, |λ_n|) and λ_n of a symmetric doubly stochastic matrix.

    Args:
        matrix: (n, n) float64, symmetric, with rows that sum to one.
    """
    agents = matrix.shape[0]
    if agents == 1:
        return 0.0, 1.0
    if agents <= DENSE_UP_TO:
        return _dense(matrix)
    return _sparse(matrix)


def _dense(matrix: csr_array) -> tuple[float, float]:
    values = np.linalg.eigvalsh(matrix.toarray())
    return float(max(abs(values[0]), abs(values[-2]))), float(values[0])


def _sparse(matrix: csr_array) -> tuple[float, float]:
    from scipy.sparse.linalg import ArpackNoConvergence

    try:
        second, smallest = _end(matrix, "LA"), _end(matrix, "SA")
    except ArpackNoConvergence:
        return _dense(matrix)
    return max(abs(second), abs(smallest)), smallest


def _end(matrix: csr_array, end: Literal["LA", "SA"]) -> float:
    """Return λ_2 ("LA") or λ_n ("SA") of W.

    Lanczos settles in a moment on well-connected graphs.  Rings and lines crowd their eigenvalues
    at both ends, but there the factors of W - sI are cheap, with s just above λ_1 = 1 or just
    below λ_n: below Gershgorin's bound min_i (2 w_ii - 1) or a rough value, whichever is nearer.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def shifted(v: np.ndarray) -> np.ndarray:
        # W + 2I has no eigenvalue near 0, where a relative tolerance would never be met, and
        # without 11ᵀ/n the largest one is that of λ_2.
        return np.asarray(matrix @ v + 2 * v - (v.mean() if end == "LA" else 0))

    operator = LinearOperator(matrix.shape, matvec=shifted, dtype=np.float64)
    v0 = np.random.default_rng(0).standard_normal(matrix.shape[0])

    def lanczos(tol: float) -> float:
        values = eigsh(
            operator, 1, which=end, v0=v0, ncv=40, maxiter=40, tol=tol, return_eigenvectors=False
        )
        return float(values[0]) - 2

    try:
        return lanczos(1e-10)
    except ArpackNoConvergence:
        beyond = 1 + 1e-6
        if end == "SA":
            gershgorin = 2 * float(matrix.diagonal().min()) - 1
            beyond = max(gershgorin - 1e-6, lanczos(1e-3) - 6e-3)
    nearest = eigsh(
        csc_array(matrix), 2, sigma=beyond, v0=v0, ncv=40, tol=1e-10, return_eigenvectors=False
    )
    return float(nearest.min())
