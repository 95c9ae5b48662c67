"""How fast W lets disagreement shrink.

For one symmetric W the two ends of its spectrum that matter, for ten agents as for ten thousand;
for matrices that change, what a period of them or a draw does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.sparse import csc_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
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


def second_modulus(matrices: Sequence[csr_array]) -> float:
    """Return |λ_2| of the product W_{T-1} … W_0 of doubly stochastic matrices, 0 for one agent."""
    product = _off_average(matrices[0])
    for W in matrices[1:]:
        product = _off_average(W) @ product
    return float(abs(np.linalg.eigvals(product)).max())


def mean_square_rho(draws: Sequence[csr_array], lasting: int) -> float:
    """Return λ_max(E[BᵀB])^(1/(2T)), B = (W - 11ᵀ/n)^T, over symmetric draws that last T rounds."""
    steps = [_off_average(W) for W in draws]
    largest = max(float(np.linalg.norm(step, 2)) for step in steps)
    if largest < np.finfo(float).eps:
        return 0.0
    if lasting > 10**12:  # the limit, from which ρ no longer differs but powers lose all digits
        return largest
    # Against the largest one, the powers of which would otherwise vanish with a long T.
    powers = [np.linalg.matrix_power(step / largest, lasting) for step in steps]
    mean = np.mean([B.T @ B for B in powers], axis=0)
    return float(largest * np.linalg.eigvalsh(mean)[-1] ** (1 / (2 * lasting)))


def _off_average(matrix: csr_array) -> NDArray[np.float64]:
    """Return W - 11ᵀ/n, which does to disagreement what W does; taken before W is multiplied.

    The product of such differences is that of the W less 11ᵀ/n, and stays exact where that is tiny.
    """
    return np.asarray(matrix.toarray() - 1 / matrix.shape[0])
