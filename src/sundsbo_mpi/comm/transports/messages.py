"""Routes of messages: neighbourhood collectives, in every round or planned once, or one by one.

The same bytes go to every neighbour, so a collective sends one buffer with all displacements zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from mpi4py import MPI

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.topology import Links

MPI_TYPES = {
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
    torch.int16: MPI.INT16_T,
    torch.uint8: MPI.BYTE,
}
TAG = 0
"""Of what goes one by one; the agents' words, on the same communicator, have another."""
LARGEST_COUNT = 2**31 - 1
"""MPI-3 libraries count elements and displacements in 32-bit integers."""

Allocate = Callable[[int, torch.dtype], "Tensor"]
"""Makes a flat tensor that MPI can write to."""


def on_host(length: int, dtype: torch.dtype) -> Tensor:
    """Make a flat tensor in host memory."""
    return torch.empty(length, dtype=dtype)


def exposed(buffer: Tensor) -> list[Any]:
    """Describe a buffer to MPI, always with its type: a guessed one may be wrong."""
    # A device buffer shows itself; a host buffer is cheaper to hand over as an array.
    memory = buffer.numpy() if buffer.device.type == "cpu" else buffer
    return [memory, MPI_TYPES[buffer.dtype]]


def excess(graph: MPI.Distgraphcomm, length: int) -> str | None:
    """Say why a collective cannot carry messages of ``length`` numbers on an agent's links."""
    sources, destinations, _ = graph.Get_dist_neighbors()
    neighbours = max(len(sources), len(destinations))
    if neighbours * length <= LARGEST_COUNT:
        return None
    return (
        f"{neighbours} neighbours times {length} numbers exceed the {LARGEST_COUNT} elements that "
        "one neighbourhood collective can address: take --transport p2p, a topology with smaller "
        "degrees or a technique with fewer vectors."
    )


def can_plan() -> bool:
    """Tell whether MPI can plan a neighbourhood collective ahead, which it can since MPI-4."""
    graph = _graph_of_nobody()
    nothing = [np.empty(0, dtype=np.uint8), ([], []), MPI.BYTE]
    try:
        graph.Neighbor_alltoallv_init(nothing, nothing).Free()
    except NotImplementedError:
        return False
    finally:
        graph.Free()
    return True


def _graph_of_nobody() -> MPI.Distgraphcomm:
    return MPI.COMM_SELF.Create_dist_graph_adjacent([], [], reorder=False)


class Collective:
    """A neighbourhood collective in every round; for a network that does not change.

    Args:
        graph: The links of this route.
        slots: The agent's messages, one at a time.
        allocate: Makes the receive buffer.
    """

    def __init__(
        self, graph: MPI.Distgraphcomm, slots: Sequence[Tensor], allocate: Allocate
    ) -> None:
        sources, destinations, _ = graph.Get_dist_neighbors()
        length, dtype = slots[0].numel(), slots[0].dtype
        received = allocate(len(sources) * length, dtype)
        self._graph, self._received = graph, received
        self._arrived = dict(zip(sources, torch.split(received, length), strict=False))
        to = ([length] * len(destinations), [0] * len(destinations))
        from_ = ([length] * len(sources), [j * length for j in range(len(sources))])
        incoming = _insert(exposed(received), from_)
        self._specified = [(_insert(exposed(slot), to), incoming) for slot in slots]

    def start(self, slot: int, links: Links) -> list[MPI.Request]:
        """Start the collective."""
        return [self._graph.Ineighbor_alltoallv(*self._specified[slot])]

    def finish(self) -> None:
        """Do nothing: the messages lie in buffers of this agent alone."""

    def arrived(self, slot: int) -> Mapping[int, Tensor]:
        """Return the rows of the receive buffer by sender."""
        return self._arrived

    def close(self) -> None:
        """Do nothing: the requests ended with their rounds."""


class Persistent(Collective):
    """A neighbourhood collective planned once for each slot; see ``can_plan``."""

    def __init__(
        self, graph: MPI.Distgraphcomm, slots: Sequence[Tensor], allocate: Allocate
    ) -> None:
        super().__init__(graph, slots, allocate)
        self._planned = [graph.Neighbor_alltoallv_init(*both) for both in self._specified]

    def start(self, slot: int, links: Links) -> list[MPI.Request]:
        """Start the slot's request."""
        self._planned[slot].Start()
        return [self._planned[slot]]

    def close(self) -> None:
        """Free the requests, which must come before their communicator."""
        for request in self._planned:
            request.Free()


class OneByOne:
    """A message for every link of the round, and nothing on links that rest.

    Args:
        comm: Where an agent has its own number.
        slots: The agent's messages, one at a time.
        allocate: Makes receive buffers; their number grows to the most sources of any round.
        peers: The agents on this route.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        slots: Sequence[Tensor],
        allocate: Allocate,
        peers: frozenset[int],
    ) -> None:
        self._comm, self._allocate, self._peers = comm, allocate, peers
        self._slots, self._outgoing = slots, [exposed(slot) for slot in slots]
        self._rows: list[Tensor] = []
        self._arrived: dict[int, Tensor] = {}

    def start(self, slot: int, links: Links) -> list[MPI.Request]:
        """Post the receives, then the sends."""
        sources = [j for j in links.sources if j in self._peers]
        while len(self._rows) < len(sources):
            like = self._slots[0]
            self._rows.append(self._allocate(like.numel(), like.dtype))
        self._arrived = dict(zip(sources, self._rows, strict=False))
        requests = [self._comm.Irecv(exposed(row), j, TAG) for j, row in self._arrived.items()]
        receivers = [j for j in links.destinations if j in self._peers]
        return requests + [self._comm.Isend(self._outgoing[slot], j, TAG) for j in receivers]

    def finish(self) -> None:
        """Do nothing: the messages lie in buffers of this agent alone."""

    def arrived(self, slot: int) -> Mapping[int, Tensor]:
        """Return the receive buffers by sender."""
        return self._arrived

    def close(self) -> None:
        """Do nothing: the requests ended with their rounds."""


def _insert(buffer: list[Any], counts: tuple[list[int], list[int]]) -> list[Any]:
    memory, kind = buffer
    return [memory, counts, kind]
