"""The network of the agents that are left after others were lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sundsbo_mpi.topology.links import adjacency, metropolis
from sundsbo_mpi.topology.weights import Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from sundsbo_mpi.topology.mixing import Mixing


class Remaining(NamedTuple):
    """What is left of a network."""

    weights: Weights
    """Row and column i belong to the i-th agent that is left."""
    bridges: tuple[tuple[int, int], ...]
    """Pairs of agents that were not linked and are now, in the numbers of the whole network."""


def remaining(
    mixing: Mixing, agents: Sequence[int], fits: Callable[[float], bool] = lambda _: True
) -> Remaining:
    """Return weights for those who are left of a network: a function of who they are alone.

    Two agents that are left are linked if either ever sent to the other: directions are dropped,
    and a network that changed does so no more (one that was drawn for ever becomes complete).
    Where that graph falls apart it is bridged by as few links as can be.  Its links get
    Metropolis-Hastings weights, W, or (I + W)/2 where W does not fit.  So the weights are
    symmetric, doubly stochastic and connected, with ρ < 1, whatever is lost and in whatever order.

    Args:
        mixing: The whole network, from before any loss.
        agents: The numbers of those who are left, ascending; at least one.
        fits: Tells of W's smallest eigenvalue whether the method can mix with W; any does if it is
            left out, and it must be true of all that are not negative.
    """
    place = np.full(mixing.agents, -1)
    place[list(agents)] = np.arange(len(agents))
    ends = place[mixing.edges()]
    links = ends[(ends >= 0).all(axis=1)]
    bridges = _bridges(adjacency(len(agents), links))
    graph = adjacency(len(agents), np.concatenate([links, bridges]))
    name = f"{mixing.name}, {len(agents)} of {mixing.agents} agents left"
    weights = Weights(metropolis(graph), name)
    if not fits(weights.lambda_min):
        weights = weights.lazy()
    return Remaining(weights, tuple((agents[i], agents[j]) for i, j in bridges.tolist()))


def _bridges(graph: csr_array) -> np.ndarray:
    """Return the links, one fewer than the graph has parts, that connect it: (B, 2).

    Every other part is tied to the largest (of equals that with the lowest agent), by the agents
    of either that have the fewest links by then, the lowest of equals.  So no way gets long, even
    where the hub of a star is lost and everybody is a part.
    """
    from scipy.sparse.csgraph import connected_components

    _, part_of = connected_components(graph, directed=False)
    order = np.argsort(part_of, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(part_of))[:-1])
    parts.sort(key=lambda part: (-part.size, part[0]))
    degrees = np.diff(graph.indptr)
    links = np.empty((len(parts) - 1, 2), dtype=np.int64)
    for other in range(1, len(parts)):
        ends = [part[np.argmin(degrees[part])] for part in (parts[0], parts[other])]
        degrees[ends] += 1
        links[other - 1] = np.sort(ends)
    return links
