"""What agents mix with: one matrix W_k for every iteration k, the same in all its rounds.

The rest of the program asks a ``Mixing`` and need not know whether its matrices change.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from scipy.sparse import csr_array


class Links(NamedTuple):
    """One agent's part in a round: v_i becomes own v_i + Σ_j w_ij v_j."""

    own: float
    """w_ii."""
    sources: dict[int, float]
    """The w_ij > 0 of the agents j ≠ i that send to agent i, ascending."""
    destinations: tuple[int, ...]
    """The agents j ≠ i with w_ji > 0, to which agent i sends, ascending."""


class Rows(NamedTuple):
    """A matrix row by row, its parts named as in SciPy's ``csr_array``, which serves in its place.

    The entries of row i are data[indptr[i] : indptr[i + 1]], in the columns that ``indices`` has
    there, ascending; none is zero.
    """

    indptr: NDArray[np.integer]
    indices: NDArray[np.integer]
    data: NDArray[np.float64]


class Mixing(ABC):
    """The matrices W_0, W_1, …: non-negative, doubly stochastic, and together contracting.

    Agent i replaces v_i by Σ_j (W_k)_ij v_j in every round of iteration k.
    """

    name: str
    """What the matrices are called in messages and figures."""

    @property
    @abstractmethod
    def agents(self) -> int:
        """The number n of agents."""

    @property
    @abstractmethod
    def rho(self) -> float:
        """The share of the disagreement, at least in the long run, that an iteration leaves."""

    @property
    @abstractmethod
    def lambda_min(self) -> float | None:
        """The smallest eigenvalue of all W_k, or None where one of them is not symmetric.

        Of matrices that are drawn for ever, a bound that no draw falls below.
        """

    @property
    @abstractmethod
    def matrices(self) -> tuple[csr_array, ...]:
        """The matrices of one period, or none where they are drawn for ever."""

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether every W_k is symmetric."""

    @property
    @abstractmethod
    def sha256(self) -> str:
        """Hex digest of what fixes all W_k, whatever file it came from."""

    @abstractmethod
    def turn(self, k: int) -> int:
        """Number the matrix of iteration k: W_k changes only where this number does."""

    @abstractmethod
    def at(self, k: int) -> csr_array:
        """Return W_k, (n, n) float64 with sorted rows and no stored zeros; the same in all runs."""

    @abstractmethod
    def edges(self) -> NDArray[np.int64]:
        """Return every pair (i, j), i ≠ j, in which i ever sends to j: (E, 2), lexicographic."""

    @abstractmethod
    def lazy(self) -> Mixing:
        """Return the same with (I + W_k) / 2 in place of every W_k."""

    @property
    def sample(self) -> tuple[csr_array, ...]:
        """The matrices of one period, or so many draws that they tell of all."""
        return self.matrices

    @property
    def mean(self) -> csr_array:
        """The average of the sample, (n, n)."""
        from scipy.sparse import csr_array

        return csr_array(sum(self.sample[1:], self.sample[0]) / len(self.sample))

    @property
    def steady(self) -> bool:
        """Whether W_k is the same for all k."""
        return len(self.matrices) == 1

    @property
    def recipe(self) -> Mapping[str, Any]:
        """What the W_k are drawn from, as plain values; empty where they are stored."""
        return {}

    @property
    def description(self) -> str:
        """The name, and how the matrices change if they do."""
        return self.name

    @property
    def spectral_gap(self) -> float:
        """The share 1 - ρ by which an iteration shrinks the disagreement."""
        return 1.0 - self.rho

    @property
    def rho_text(self) -> str:
        """The digits of ρ: six decimals, or as many as tell it from one."""
        return f"{self.rho:.{digits(self.rho, 6)}f}"

    def links(self, i: int, k: int = 0) -> Links:
        """Return agent i's part in the rounds of iteration k."""
        W = self._rows_at(k)
        sources = row_of(W, i)
        own = sources.pop(i, 0.0)
        to = sources if self.symmetric else _rows_with(W, i)
        return Links(own, sources, tuple(j for j in to if j != i))

    def _rows_at(self, k: int) -> Rows | csr_array:
        return self.at(k)


def digits(rho: float, least: int) -> int:
    """Return how many decimals tell ρ from one, where it differs from it, and at least so many."""
    gap = 1.0 - rho
    return max(least, 1 - math.floor(math.log10(gap))) if gap > 0 else least


def row_of(matrix: Rows | csr_array, i: int) -> dict[int, float]:
    """Return the entries of row i that are not zero by their column, ascending."""
    span = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return dict(zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True))


def edges_of(matrix: Rows | csr_array) -> NDArray[np.int64]:
    """Return every pair (i, j), i ≠ j, with w_ji > 0, that is with i sending to j: (E, 2).

    They are in lexicographic order.
    """
    receivers, senders = _row_numbers(matrix), matrix.indices.astype(np.int64)
    apart = receivers != senders
    receivers, senders = receivers[apart], senders[apart]
    by_sender = np.argsort(senders, kind="stable")  # receivers ascend already
    return np.column_stack([senders[by_sender], receivers[by_sender]])


def _rows_with(matrix: Rows | csr_array, column: int) -> list[int]:
    """Return the rows that have an entry in a column, ascending."""
    rows: list[int] = _row_numbers(matrix)[matrix.indices == column].tolist()
    return rows


def _row_numbers(matrix: Rows | csr_array) -> NDArray[np.int64]:
    """Return the row of every entry."""
    return np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
