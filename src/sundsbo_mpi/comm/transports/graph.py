"""The links of one agent as MPI is told of them, and the way that messages take along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sundsbo_mpi.comm.transports import COLLECTIVE, ONE_BY_ONE
from sundsbo_mpi.comm.transports.messages import (
    Allocate,
    Collective,
    OneByOne,
    Persistent,
    excess,
)

if TYPE_CHECKING:
    from mpi4py import MPI
    from torch import Tensor

    from sundsbo_mpi.comm.transports.exchange import Route


class Edges(NamedTuple):
    """From whom an agent ever receives, and to whom it ever sends; ascending."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]


class Graph:
    """An agent's links with some of the others.  Making one and ``close`` are collective.

    Args:
        comm: A communicator with one rank per agent, rank i being agent i.
        edges: All links of this agent.
        among: The agents that messages go to and come from in this graph.
        way: How messages go, a name of a route that is not shared memory.
    """

    def __init__(self, comm: MPI.Intracomm, edges: Edges, among: frozenset[int], way: str) -> None:
        self._graph, self._among, self._way = _connect(comm, edges, among), among, way

    def excess(self, length: int) -> str | None:
        """Say why messages of ``length`` numbers cannot go this way on this agent's links."""
        return None if self._way == ONE_BY_ONE else excess(self._graph, length)

    def route(self, slots: Sequence[Tensor], allocate: Allocate) -> Route:
        """Plan the route of the messages in some slots; collective."""
        if self._way == ONE_BY_ONE:
            return OneByOne(self._graph, slots, allocate, self._among)
        kind = Collective if self._way == COLLECTIVE else Persistent
        return kind(self._graph, slots, allocate)

    def close(self) -> None:
        """Free the communicator, after the routes have been closed."""
        self._graph.Free()


def _connect(comm: MPI.Intracomm, edges: Edges, among: frozenset[int]) -> MPI.Distgraphcomm:
    from_ = [j for j in edges.sources if j in among]
    to = [j for j in edges.destinations if j in among]
    graph = comm.Create_dist_graph_adjacent(from_, to, reorder=False)
    found = graph.Get_dist_neighbors()[:2]
    if tuple(map(list, found)) != (from_, to):
        raise RuntimeError(f"MPI reordered the sources and destinations {(from_, to)} to {found}")
    return graph
