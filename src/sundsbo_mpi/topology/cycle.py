"""A stack of weight matrices that are applied one after the other, over and over."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology.checks import canonical, require_doubly_stochastic, require_together
from sundsbo_mpi.topology.links import halved
from sundsbo_mpi.topology.mixing import Mixing, edges_of
from sundsbo_mpi.topology.spectrum import extremes, second_modulus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


MOST_MATRICES = 1000
"""In a stack; as many are judged in a few seconds."""


def require_count(matrices: int, name: str) -> None:
    """Refuse a stack of no or of too many matrices, before anything is made of them.

    Raises:
        UsageError: There is none or more than ``MOST_MATRICES``.
    """
    if matrices == 0:
        raise UsageError(f"'{name}' holds no matrix, expected at least one; add it.")
    if matrices > MOST_MATRICES:
        raise UsageError(
            f"'{name}' holds {matrices} matrices, expected at most {MOST_MATRICES}; give a "
            "shorter period."
        )


@dataclass(frozen=True, eq=False)
class Cycle(Mixing):
    """Matrices W_0 … W_{T-1} with W_k = W_{k mod T}.

    Each is non-negative and doubly stochastic within the tolerance of ``Weights``; it need be
    neither symmetric nor connected by itself.  What is judged is the product P = W_{T-1} … W_0 of
    a period, whose eigenvalues but for λ_1 = 1 must lie within the unit circle: then P^m tends to
    the average.  ρ = |λ_2(P)|^(1/T) is the shrinkage per iteration, which for one symmetric matrix
    is that of ``Weights``.

    Args:
        stack: The T matrices, dense or sparse, (n, n) each.
        name: What they are called in messages and figures.

    Raises:
        UsageError: There is none or more than ``MOST_MATRICES``, one of them is not what it should
            be, or their product does not contract; the sentence names the worst matrix and row or
            entry.
    """

    stack: tuple[csr_array, ...]
    name: str

    def __post_init__(self) -> None:
        require_count(len(self.stack), self.name)
        exact = []
        for t, matrix in enumerate(self.stack):
            called = f"{self.name}, matrix {t}" if len(self.stack) > 1 else self.name
            W, tolerance = canonical(matrix, called, connects=False)
            require_doubly_stochastic(W, called, tolerance)
            exact.append(W)
        object.__setattr__(self, "stack", tuple(exact))
        require_together(self.stack, self.period_rho, self.name)

    @property
    def agents(self) -> int:
        """The number n of agents."""
        return int(self.stack[0].shape[0])

    @property
    def matrices(self) -> tuple[csr_array, ...]:
        """The matrices of a period."""
        return self.stack

    @cached_property
    def period_rho(self) -> float:
        """The second largest modulus |λ_2(P)| of the eigenvalues of a period's product."""
        return second_modulus(self.stack)

    @property
    def rho(self) -> float:
        """The shrinkage |λ_2(P)|^(1/T) of the disagreement per iteration."""
        return float(self.period_rho ** (1 / len(self.stack)))

    @cached_property
    def lambda_min(self) -> float | None:
        """The smallest eigenvalue of all matrices, or None where one of them is not symmetric."""
        return min(extremes(W)[1] for W in self.stack) if self.symmetric else None

    @cached_property
    def symmetric(self) -> bool:
        """Whether every matrix equals its transpose."""
        return all(abs(W - W.T).max() == 0 for W in self.stack)

    @property
    def description(self) -> str:
        """The name and the number of matrices."""
        count = len(self.stack)
        return f"{self.name} ({count} matrices in turn)" if count > 1 else self.name

    @cached_property
    def sha256(self) -> str:
        """Hex digest of n and of the compressed rows of all matrices, in order."""
        digest = hashlib.sha256(f"sundsbo-mpi cycle {len(self.stack)} {self.agents}\n".encode())
        for W in self.stack:
            for part, kind in ((W.indptr, "<i8"), (W.indices, "<i8"), (W.data, "<f8")):
                digest.update(part.astype(kind).tobytes())
        return digest.hexdigest()

    def turn(self, k: int) -> int:
        """Return k mod T."""
        return k % len(self.stack)

    def at(self, k: int) -> csr_array:
        """Return W_{k mod T}."""
        return self.stack[self.turn(k)]

    def edges(self) -> NDArray[np.int64]:
        """Return every pair (i, j), i ≠ j, with i sending to j in some matrix: (E, 2) int64."""
        return edges_of(self.mean)

    def lazy(self) -> Cycle:
        """Return the cycle of (I + W_t) / 2."""
        return Cycle(tuple(halved(W) for W in self.stack), f"lazy {self.name}")
