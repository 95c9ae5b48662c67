"""The networks that are measured: all links of a topology, and those of one class alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy.sparse import coo_array, csr_array

from sundsbo_mpi.bench.model import OTHER, SAME
from sundsbo_mpi.topology.links import halved, with_rest
from sundsbo_mpi.topology.mixing import Mixing, edges_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALL = "all"
"""The name of the network with all links."""


class Part(Mixing):
    """Some links of a weight matrix; what agents no longer send, they keep.

    It need not connect the agents: nothing is to converge, it is only timed.

    Args:
        matrix: (n, n), doubly stochastic, with sorted rows and no stored zeros.
        name: What the part is called.
        symmetric: Whether whoever sends to an agent also receives from it.
    """

    def __init__(self, matrix: csr_array, name: str, *, symmetric: bool) -> None:
        self.matrix, self.name, self._symmetric = matrix, name, symmetric

    @property
    def agents(self) -> int:
        """The number n of agents."""
        return int(self.matrix.shape[0])

    @property
    def rho(self) -> float:
        """One: it need not contract."""
        return 1.0

    @property
    def lambda_min(self) -> float | None:
        """None: it is not known."""
        return None

    @property
    def matrices(self) -> tuple[csr_array, ...]:
        """The matrix."""
        return (self.matrix,)

    @property
    def symmetric(self) -> bool:
        """Whether whoever sends to an agent also receives from it."""
        return self._symmetric

    @property
    def sha256(self) -> str:
        """Nothing: it is not recorded."""
        return ""

    def turn(self, k: int) -> int:
        """Return 0: the matrix does not change."""
        return 0

    def at(self, k: int) -> csr_array:
        """Return the matrix, whatever k is."""
        return self.matrix

    def edges(self) -> NDArray[np.int64]:
        """Return sender and receiver of every message, (E, 2)."""
        return edges_of(self.matrix)

    def lazy(self) -> Part:
        """Return (I + W)/2."""
        return Part(halved(self.matrix), self.name, symmetric=self._symmetric)


def parts(weights: Mixing, nodes: NDArray[np.int64]) -> dict[str, Part]:
    """Return the networks to measure, by name: those of one class only where there are both.

    Args:
        weights: What is to be measured; where it changes, as it is in iteration 0.
        nodes: The node of every agent, (n,).
    """
    whole, symmetric = weights.at(0), weights.symmetric
    entries = coo_array(whole)
    apart = entries.row != entries.col
    together = nodes[entries.row] == nodes[entries.col]
    found = {ALL: Part(whole, weights.name, symmetric=symmetric)}
    if (apart & together).any() and (apart & ~together).any():
        for name, kind in ((SAME, together), (OTHER, ~together)):
            keep = apart & kind
            shares = csr_array(
                (entries.data[keep], (entries.row[keep], entries.col[keep])), shape=entries.shape
            )
            found[name] = Part(_tidied(with_rest(shares)), f"{name} links", symmetric=symmetric)
    return found


def _tidied(matrix: csr_array) -> csr_array:
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
