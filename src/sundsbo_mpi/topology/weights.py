"""The weight matrix W of the network: a record that cannot hold a bad one.

The paper assumes W non-negative, symmetric and doubly stochastic with eigenvalues
1 = λ_1 > λ_2 ≥ … ≥ λ_n and ρ = max(|λ_2|, |λ_n|) < 1.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.topology.mixing import Mixing, Rows, edges_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


@dataclass(frozen=True, init=False, eq=False)
class Weights(Mixing):
    """A valid weight matrix: agent i replaces v_i by Σ_j w_ij v_j in a round of gossip.

    Rows and columns may miss a sum of one by 1e-6, or by 1e-5 where ``matrix`` comes as float32;
    what is accepted is kept as it is, in float64 and without stored zeros.

    A copy that was sent to another process has the rows of W as plain arrays: its links need no
    SciPy, which is loaded when a matrix is asked for.

    Args:
        matrix: Square, dense or sparse, (n, n).
        name: What the matrix is called in messages and figures.

    Raises:
        UsageError: W is not non-negative, symmetric, doubly stochastic and connected with ρ < 1;
            the sentence names the worst row or entry.
    """

    name: str
    _rows: Rows = field(repr=False)

    def __init__(self, matrix: csr_array | NDArray[Any], name: str) -> None:
        from sundsbo_mpi.topology.checks import canonical, require_contraction, require_structure

        exact, tolerance = canonical(matrix, name)
        require_structure(exact, name, tolerance)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_rows", Rows(exact.indptr, exact.indices, exact.data))
        require_contraction(self.rho, self.lambda_min, name)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made of: no matrix of SciPy."""
        return {name: value for name, value in vars(self).items() if name != "matrix"}

    @cached_property
    def matrix(self) -> csr_array:
        """W, (n, n) float64."""
        from scipy.sparse import csr_array

        indptr, indices, data = self._rows
        return csr_array((data, indices, indptr), shape=(self.agents, self.agents))

    @property
    def agents(self) -> int:
        """The number n of agents."""
        return len(self._rows.indptr) - 1

    @cached_property
    def _extremes(self) -> tuple[float, float]:
        from sundsbo_mpi.topology.spectrum import extremes

        return extremes(self.matrix)

    @property
    def rho(self) -> float:
        """The connectivity parameter ρ = max(|λ_2|, |λ_n|), which is 0 for one agent."""
        return self._extremes[0]

    @property
    def lambda_min(self) -> float:
        """The smallest eigenvalue λ_n, which is 1 for one agent."""
        return self._extremes[1]

    @property
    def matrices(self) -> tuple[csr_array, ...]:
        """W alone."""
        return (self.matrix,)

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    @cached_property
    def sha256(self) -> str:
        """Hex digest of n and of W's compressed rows, whatever file they came from."""
        digest = hashlib.sha256(f"sundsbo-mpi weights {self.agents}\n".encode())
        digest.update(self._rows.indptr.astype("<i8").tobytes())
        digest.update(self._rows.indices.astype("<i8").tobytes())
        digest.update(self._rows.data.astype("<f8").tobytes())
        return digest.hexdigest()

    def turn(self, k: int) -> int:
        """Return 0: W does not change."""
        return 0

    def at(self, k: int) -> csr_array:
        """Return W, whatever k is."""
        return self.matrix

    def edges(self) -> NDArray[np.int64]:
        """Return every pair (i, j), i ≠ j, with i sending to j: (E, 2) int64, lexicographic."""
        return edges_of(self._rows)

    def _rows_at(self, k: int) -> Rows:
        return self._rows

    @property
    def steady(self) -> bool:
        """True."""
        return True

    def lazy(self) -> Weights:
        """Return (I + W) / 2, whose eigenvalues lie in (0, 1] with ρ = (1 + λ_2) / 2."""
        from sundsbo_mpi.topology.links import halved

        return Weights(halved(self.matrix), f"lazy {self.name}")
