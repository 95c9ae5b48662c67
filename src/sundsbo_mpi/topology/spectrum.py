"""How fast W lets disagreement shrink.

For one symmetric W the two ends of its spectrum that matter, for ten agents as for ten thousand;
for matrices that change, what a period of them or a draw does.  Above ``DENSE_UP_TO`` agents only
products of W with vectors and its sparse factors are formed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.sparse import csc_array

from sundsbo_mpi.errors import UsageError, reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

End = Literal["LA", "SA"]
"""ARPACK's words for the largest and the smallest eigenvalue."""
DENSE_UP_TO = 1200
"""Agents for whom all eigenvalues take a second and a few megabytes."""
MOST_ROUNDS = 1000
NEAR_ONE = 0.98
"""Below it Lanczos settles, and factors of W - sI tend to be full."""


def extremes(matrix: csr_array) -> tuple[float, float]:
    """Return ρ = max(|λ_2|, |λ_n|) and λ_n of a symmetric doubly stochastic matrix.

    Args:
        matrix: (n, n) float64, symmetric, with rows that sum to one.

    Raises:
        UsageError: As ``both_ends``.
    """
    if matrix.shape[0] == 1:
        return 0.0, 1.0
    second, smallest = both_ends(matrix)
    return max(abs(second), abs(smallest)), smallest


def both_ends(matrix: csr_array) -> tuple[float, float]:
    """Return λ_2 and λ_n of a symmetric matrix whose rows sum to one and whose λ_1 is 1.

    Args:
        matrix: (n, n) float64, symmetric, n >= 2.

    Raises:
        UsageError: There are more than ``DENSE_UP_TO`` agents and the eigenvalues are not found.
    """
    return _dense(matrix) if matrix.shape[0] <= DENSE_UP_TO else _sparse(matrix)


def _dense(matrix: csr_array) -> tuple[float, float]:
    values = np.linalg.eigvalsh(matrix.toarray())
    return float(values[-2]), float(values[0])


def _sparse(matrix: csr_array) -> tuple[float, float]:
    from scipy.sparse.linalg import ArpackError

    try:
        return _end(matrix, "LA"), _end(matrix, "SA")
    # RuntimeError: SuperLU, whose factors may also outgrow the memory
    except (ArpackError, MemoryError, RuntimeError) as error:
        raise _not_found(matrix.shape[0], error) from error


def _not_found(agents: int, error: Exception) -> UsageError:
    return UsageError(
        f"the eigenvalues of the weights of {agents} agents, by which gossip is judged, were "
        f"not found ({reason(error)}), expected them to settle; take a graph whose agents are "
        "fewer steps apart, such as exponential or random-regular."
    )


def _end(matrix: csr_array, end: End) -> float:
    """Return λ_2 ("LA") or λ_n ("SA") of W.

    Lanczos settles in a moment on well-connected graphs, and in the end wherever λ_2 is not near
    one.  Rings and lines crowd their eigenvalues at both ends, but there the factors of W - sI are
    cheap, with s just above λ_1 = 1 or just below λ_n: below Gershgorin's bound min_i (2 w_ii - 1)
    or a rough value, whichever is nearer.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    try:
        return _lanczos(matrix, end, 1e-10)
    except ArpackNoConvergence:
        if _lanczos(matrix, "LA", 1e-3) < NEAR_ONE:
            return _lanczos(matrix, end, 1e-10, 1000)
        beyond = 1 + 1e-6
        if end == "SA":
            gershgorin = 2 * float(matrix.diagonal().min()) - 1
            beyond = max(gershgorin - 1e-6, _lanczos(matrix, "SA", 1e-3) - 6e-3)
    v0 = _start(matrix.shape[0])
    nearest = eigsh(
        csc_array(matrix), 2, sigma=beyond, v0=v0, ncv=40, tol=1e-10, return_eigenvectors=False
    )
    return float(nearest.min())


def _lanczos(matrix: csr_array, end: End, tol: float, restarts: int = 40) -> float:
    from scipy.sparse.linalg import LinearOperator, eigsh

    def shifted(v: NDArray[np.float64]) -> NDArray[np.float64]:
        # The eigenvalues of W + 2I lie in [1, 3]: none is near 0, where a relative tolerance would
        # never be met.  Less 3 11ᵀ/n, that of λ_1 is 0, below all, and the largest that of λ_2.
        return np.asarray(matrix @ v + 2 * v - (3 * v.mean() if end == "LA" else 0))

    operator = LinearOperator(matrix.shape, matvec=shifted, dtype=np.float64)
    v0 = _start(matrix.shape[0])
    values = eigsh(
        operator, 1, which=end, v0=v0, ncv=40, maxiter=restarts, tol=tol, return_eigenvectors=False
    )
    return float(values[0]) - 2


def _start(agents: int) -> NDArray[np.float64]:
    """Return the vector that Lanczos starts from, the same in all runs."""
    return np.random.default_rng(0).standard_normal(agents)


def second_modulus(matrices: Sequence[csr_array]) -> float:
    """Return |λ_2| of the product W_{T-1} … W_0 of doubly stochastic matrices, 0 for one agent.

    Raises:
        UsageError: There are more than ``DENSE_UP_TO`` agents and the eigenvalue is not found.
    """
    if matrices[0].shape[0] > DENSE_UP_TO:
        return _second_of_many(matrices)
    product = _off_average(matrices[0])
    for W in matrices[1:]:
        product = _off_average(W) @ product
    return float(abs(np.linalg.eigvals(product)).max())


def _second_of_many(matrices: Sequence[csr_array]) -> float:
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

    def period(v: NDArray[np.float64]) -> NDArray[np.float64]:
        return _rounds(matrices, v)

    agents = matrices[0].shape[0]
    tiny = agents * np.finfo(float).eps
    v0 = _start(agents)
    # A period that averages exactly leaves rounding errors, whose eigenvalues mean nothing.
    if np.linalg.norm(period(v0)) <= tiny * np.linalg.norm(v0):
        return 0.0
    operator = LinearOperator((agents, agents), matvec=period, dtype=np.float64)
    try:
        values = eigs(operator, 1, v0=v0, ncv=40, tol=1e-10, return_eigenvectors=False)
    except ArpackError as error:
        raise _not_found(agents, error) from error
    largest = float(abs(values[0]))
    return largest if largest > tiny else 0.0


def _rounds(matrices: Sequence[csr_array], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the matrices, one after the other, make of the disagreement in v."""
    v = v - v.mean()
    for W in matrices:
        v = W @ v
    return np.asarray(v - v.mean())


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


def alike_rho(draws: Sequence[csr_array], lasting: int) -> float:
    """Return (E‖Bv‖²/‖v‖²)^(1/(2T)), B = (W - 11ᵀ/n)^T, for draws that treat all agents alike.

    Then E[BᵀB] = c (I - 11ᵀ/n) and any v will do to find c, here a random one for every draw; this
    is what ``mean_square_rho`` tends to as the draws become more, without a dense matrix.  Factors
    beyond the first ``MOST_ROUNDS`` no longer change ρ.
    """
    rounds = min(lasting, MOST_ROUNDS)
    rng = np.random.default_rng(0)
    logarithms = np.empty(len(draws))
    for draw, W in enumerate(draws):
        v = rng.standard_normal(W.shape[0])
        shrunk = 0.0
        v -= v.mean()
        v /= np.linalg.norm(v)
        for _ in range(rounds):
            v = _rounds([W], v)
            norm = float(np.linalg.norm(v))
            shrunk += np.log(norm)
            v /= norm
        logarithms[draw] = 2 * shrunk
    largest = logarithms.max()
    mean = largest + np.log(np.mean(np.exp(logarithms - largest)))
    return float(np.exp(mean / (2 * rounds)))


def _off_average(matrix: csr_array) -> NDArray[np.float64]:
    """Return W - 11ᵀ/n, which does to disagreement what W does; taken before W is multiplied.

    The product of such differences is that of the W less 11ᵀ/n, and stays exact where that is tiny.
    """
    return np.asarray(matrix.toarray() - 1 / matrix.shape[0])
