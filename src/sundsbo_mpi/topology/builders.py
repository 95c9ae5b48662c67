"""The graphs that the command can write: one function each, its parameters are its options.

A builder returns the weights for a number of agents.  To add one, write the function and name it
in ``BUILDERS``; the command, the list of topologies and the tests follow.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import numpy as np
from scipy.sparse import csr_array  # noqa: TC002  the command reads the annotations

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology.building import EdgeWeight, builder, check_entries
from sundsbo_mpi.topology.links import adjacency, circulant_weights, weighted
from sundsbo_mpi.topology.random_graphs import erdos_renyi, random_regular

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sundsbo_mpi.topology.weights import Weights

SelfWeight = Annotated[float | None, "Share w_ii that an agent keeps of its own value."]
LinkWeight = Annotated[float | None, "Weight of every link, in place of the self-weight."]
Offsets = Annotated[tuple[int, ...], "Agent i is linked to i ± each of these, for example 1,3."]
Rows = Annotated[int | None, "Rows of the rectangle, as near to a square as n allows by default."]


@builder
def ring(
    agents: int, *, self_weight: SelfWeight = None, edge_weight: LinkWeight = None
) -> csr_array:
    """Ring: w_ii = a, by default 1/2, and w_i,i±1 = (1 - a)/2.

    Two agents are linked twice, w_01 = 1 - a; one agent is linked to itself, W = [[1]].
    """
    return circulant_weights(agents, (1,), self_weight, edge_weight)


@builder
def line(agents: int, *, edge_weight: EdgeWeight = None) -> csr_array:
    """Line: agent i is linked to i - 1 and i + 1, the two ends to one agent only."""
    return weighted(adjacency(agents, _along(np.arange(agents)[np.newaxis])), edge_weight)


@builder
def exponential(agents: int, *, self_weight: SelfWeight = 0.25) -> csr_array:
    """Exponential graph: agent i is linked to i ± 1, 3, 7, … (2^j - 1 < n), all links alike.

    Links that coincide modulo n add up: for n = 10 and self-weight 1/4, the three pairs of links
    leave 1/8 to each of i ± 1 and 1/4 to each of i ± 3.
    """
    offsets = [2**j - 1 for j in range(1, max(agents.bit_length(), 2))]
    return circulant_weights(agents, offsets, self_weight, None)


@builder
def circulant(
    agents: int,
    *,
    offsets: Offsets,
    self_weight: SelfWeight = None,
    edge_weight: LinkWeight = None,
) -> csr_array:
    """Circulant graph: w_ii = a, and each i ± offset has (1 - a)/(2m) for m offsets.

    Links that coincide modulo n add up.
    """
    return circulant_weights(agents, offsets, self_weight, edge_weight)


@builder
def star(agents: int, *, edge_weight: EdgeWeight = None) -> csr_array:
    """Star: agent 0 is linked to all others, which have no other link."""
    leaves = np.arange(1, agents)
    return weighted(adjacency(agents, np.column_stack([0 * leaves, leaves])), edge_weight)


@builder
def complete(agents: int, *, edge_weight: EdgeWeight = None) -> csr_array:
    """Complete graph: all agents are linked, with w_ij = 1/n if nothing else is said."""
    check_entries(agents, 1.0)
    return weighted(adjacency(agents, np.column_stack(np.triu_indices(agents, 1))), edge_weight)


@builder
def grid(agents: int, *, rows: Rows = None, edge_weight: EdgeWeight = None) -> csr_array:
    """Grid: a rectangle in which agents are linked to those beside, above and below."""
    place = _rectangle(agents, rows)
    return weighted(adjacency(agents, np.vstack([_along(place), _along(place.T)])), edge_weight)


@builder
def torus(agents: int, *, rows: Rows = None, edge_weight: EdgeWeight = None) -> csr_array:
    """Torus: the grid with its opposite borders linked; links that coincide count once."""
    place = _rectangle(agents, rows)
    next_to = [np.column_stack([place.flat, np.roll(place, 1, axis).flat]) for axis in (0, 1)]
    return weighted(adjacency(agents, np.vstack(next_to)), edge_weight)


@builder
def hypercube(agents: int, *, edge_weight: EdgeWeight = None) -> csr_array:
    """Hypercube: agents whose numbers differ in one binary digit are linked."""
    if agents & (agents - 1):
        raise UsageError(f"got {agents} agents, expected a power of two; a hypercube has 2^d.")
    i = np.arange(agents)
    flips = [np.column_stack([i, i ^ 2**bit]) for bit in range(agents.bit_length() - 1)]
    return weighted(adjacency(agents, np.vstack([np.empty((0, 2), int), *flips])), edge_weight)


def _along(place: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pair every agent with the next one in its row."""
    return np.column_stack([place[:, :-1].flat, place[:, 1:].flat])


def _rectangle(agents: int, rows: int | None) -> NDArray[np.int64]:
    if rows is None:
        rows = max(r for r in range(1, math.isqrt(agents) + 1) if agents % r == 0)
    if rows < 1 or agents % rows:
        raise UsageError(
            f"{agents} agents do not fill {rows} rows evenly, expected a divisor of {agents}; "
            "change --rows or --agents."
        )
    return np.arange(agents).reshape(rows, -1)


BUILDERS: dict[str, Callable[..., Weights]] = {
    build.__name__.replace("_", "-"): build
    for build in (
        ring,
        line,
        exponential,
        circulant,
        star,
        complete,
        grid,
        torus,
        hypercube,
        erdos_renyi,
        random_regular,
    )
}
