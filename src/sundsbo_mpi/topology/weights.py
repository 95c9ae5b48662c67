"""The weight matrix W of the network: a record that cannot hold a bad one.

The paper assumes W non-negative, symmetric and doubly stochastic with eigenvalues
1 = λ_1 > λ_2 ≥ … ≥ λ_n and ρ = max(|λ_2|, |λ_n|) < 1.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.topology.checks import canonical, require_contraction, require_structure
from sundsbo_mpi.topology.links import halved
from sundsbo_mpi.topology.spectrum import extremes

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class Weights:
    """A valid weight matrix: agent i replaces v_i by Σ_j w_ij v_j in a round of gossip.

    Rows and columns may miss a sum of one by 1e-6, or by 1e-5 where ``matrix`` comes as float32;
    what is accepted is kept as it is, in float64 and without stored zeros.

    Args:
        matrix: Square, dense or sparse, (n, n).
        name: What the matrix is called in messages and figures.

    Raises:
        UsageError: W is not non-negative, symmetric, doubly stochastic and connected with ρ < 1;
            the sentence names the worst row or entry.
    """

    matrix: csr_array
    name: str

    def __post_init__(self) -> None:
        exact, tolerance = canonical(self.matrix, self.name)
        object.__setattr__(self, "matrix", exact)
        require_structure(exact, self.name, tolerance)
        require_contraction(self.rho, self.lambda_min, self.name)

    @property
    def agents(self) -> int:
        """The number n of agents."""
        return int(self.matrix.shape[0])

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        return extremes(self.matrix)

    @property
    def rho(self) -> float:
        """The connectivity parameter ρ = max(|λ_2|, |λ_n|), which is 0 for one agent."""
        return self._extremes[0]

    @property
    def spectral_gap(self) -> float:
        """The share 1 - ρ by which a round of gossip shrinks the disagreement at least."""
        return 1.0 - self.rho

    @property
    def rho_text(self) -> str:
        """The digits of ρ: six decimals, or as many as tell it from one."""
        return f"{self.rho:.{max(6, 1 - math.floor(math.log10(self.spectral_gap)))}f}"

    @property
    def lambda_min(self) -> float:
        """The smallest eigenvalue λ_n, which is 1 for one agent."""
        return self._extremes[1]

    @cached_property
    def sha256(self) -> str:
        """Hex digest of n and of W's compressed rows, whatever file they came from."""
        digest = hashlib.sha256(f"sundsbo-mpi weights {self.agents}\n".encode())
        digest.update(self.matrix.indptr.astype("<i8").tobytes())
        digest.update(self.matrix.indices.astype("<i8").tobytes())
        digest.update(self.matrix.data.astype("<f8").tobytes())
        return digest.hexdigest()

    def row(self, i: int) -> tuple[float, dict[int, float]]:
        """Return w_ii and, in ascending order of j, the w_ij of the neighbours of agent i."""
        span = slice(self.matrix.indptr[i], self.matrix.indptr[i + 1])
        columns, values = self.matrix.indices[span].tolist(), self.matrix.data[span].tolist()
        shares = dict(zip(columns, values, strict=True))
        return shares.pop(i, 0.0), shares

    def neighbours(self, i: int) -> tuple[int, ...]:
        """Return the agents that agent i exchanges messages with, ascending, without i."""
        return tuple(self.row(i)[1])

    @cached_property
    def degrees(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The number of neighbours of every agent, (n,) int64."""
        return np.bincount(self.edges()[:, 0], minlength=self.agents)

    def edges(self) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        """Return every pair (i, j), i ≠ j, with i sending to j: (E, 2) int64, lexicographic."""
        rows = np.repeat(np.arange(self.agents), np.diff(self.matrix.indptr))
        pairs = np.column_stack([rows, self.matrix.indices]).astype(np.int64)
        links: np.ndarray[tuple[int, int], np.dtype[np.int64]] = pairs[rows != pairs[:, 1]]
        return links

    def lazy(self) -> Weights:
        """Return (I + W) / 2, whose eigenvalues lie in (0, 1] with ρ = (1 + λ_2) / 2."""
        return Weights(halved(self.matrix), f"lazy {self.name}")
