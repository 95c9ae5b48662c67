"""The links of one agent, and over which routes they go.

That is decided once, when a run starts.  Only where the memory of a node turns out too small for
the messages of one exchange do those go over MPI after all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from mpi4py import MPI

from sundsbo_mpi.comm.agreement import meet
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports import (
    COLLECTIVE,
    DEFAULT,
    ONE_BY_ONE,
    PERSISTENT,
    SHARED,
    SPOKEN,
    TRANSPORTS,
    Transport,
)
from sundsbo_mpi.comm.transports.exchange import Exchange
from sundsbo_mpi.comm.transports.graph import Edges, Graph
from sundsbo_mpi.comm.transports.messages import Allocate, can_plan, on_host
from sundsbo_mpi.comm.transports.shared import Shared, Window, obstacle, shortage
from sundsbo_mpi.comm.transports.staging import Direct, Layer, Staged
from sundsbo_mpi.comm.waiting import PATIENT, Waiting
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import Links

if TYPE_CHECKING:
    from sundsbo_mpi.topology import Mixing

TRIED_LENGTHS = (10, 300_000)
"""Numbers in the messages of the trial of device buffers: MPI moves short ones in another way."""


@dataclass(frozen=True)
class Wires:
    """What was asked of the links.

    Args:
        transport: A name in ``TRANSPORTS``.
        largest: Bytes of the longest message, as far as known; without room for it no memory is
            shared.
        layer: The device of the payloads; None for host memory.
        direct: Hand device buffers to MPI, from agent to agent; needs an MPI that can take them.
        part: Ranks of one node with other numbers than this one's count as on another node: so one
            machine can stand for several, as in the tests.
        waiting: How this agent waits for messages.  Where it watches for agents that are lost,
            messages go one by one, whatever ``transport`` says.
    """

    transport: str = DEFAULT
    largest: int = 0
    layer: Layer | None = None
    direct: bool = False
    part: int = 0
    waiting: Waiting = PATIENT


class Network:
    """One agent's links.  Making one, ``plan`` and ``close`` are collective.

    Args:
        comm: A communicator with one rank per agent, rank i being agent i.
        mixing: The matrices W_k, the same on all ranks.
        wires: What was asked; the same on all ranks, but for the device.

    Raises:
        UsageError: on all ranks, if device buffers shall be sent and are not there, are unknown to
            the MPI library, or arrive spoilt.
    """

    notes: tuple[str, ...] = ()
    """What a user must know about the choice; ``plan`` may add to it."""

    def __init__(self, comm: MPI.Intracomm, mixing: Mixing, wires: Wires) -> None:
        senders, receivers = mixing.edges().T
        self.destinations = tuple(receivers[senders == comm.rank].tolist())
        self.sources = tuple(np.sort(senders[receivers == comm.rank]).tolist())
        self._comm, self._wires, self._steady = comm, wires, mixing.steady
        self._node = _ranks_of_the_node(comm, wires.part)
        self._places = {agent: place for place, agent in enumerate(self._node.allgather(comm.rank))}
        hosts = np.array(comm.allgather(min(self._places)))
        near = hosts[senders] == hosts[receivers]
        asked = TRANSPORTS[wires.transport]
        self._way = asked.far if self._steady and not wires.direct else ONE_BY_ONE
        self._shares = self._can_share(wanted=bool(near.any()) and asked.near == SHARED)
        everyone = frozenset(range(comm.size))
        self._graph_between: Graph | None = None
        """The links with agents of other nodes, where memory is shared."""
        self._graph: Graph | None = None
        if not self._shares:
            self._graph = self._connect(everyone)
        elif not near.all():
            self._graph_between = self._connect(everyone - self._places.keys())
        routes = Transport(SHARED if self._shares else self._way, self._way, asked.about)
        self.description = routes.describe(bool(near.any()), not near.all())
        if wires.direct and (complaint := self._complaint_of_devices(comm, wires.layer)):
            self.close()
            raise UsageError(complaint)

    def _complaint_of_devices(self, comm: MPI.Intracomm, layer: Layer | None) -> str | None:
        if on_cpu := comm.allreduce(int(layer is None)):
            return (
                f"run.gpu_direct is set, but {on_cpu} of {comm.size} agents compute on the CPU: "
                "use --device cuda, or leave gpu_direct out."
            )
        assert layer is not None
        # First, since a library that does not know device memory may end the program on meeting it.
        if not comm.allreduce(layer.known_to_mpi(), MPI.LAND):
            return (
                "run.gpu_direct is set, but this MPI library does not say that it can read GPU "
                "buffers: leave it out, or take an MPI that was built for these GPUs."
            )
        if comm.allreduce(self._reaches_devices(comm.rank, layer), MPI.LAND):
            return None
        return (
            "run.gpu_direct is set, but what this MPI library sends from GPU buffers arrives "
            "spoilt: leave it out, or take an MPI that was built for these GPUs."
        )

    def _reaches_devices(self, rank: int, layer: Layer) -> bool:
        """Send one's number along all links, from device to device."""
        links = Links(0.0, dict.fromkeys(self.sources, 1.0), self.destinations)
        right = True
        for length in TRIED_LENGTHS:
            exchange = self.plan(torch.float32, length)
            layer.copy(exchange.packed, torch.full((length,), float(rank + 1)))
            exchange.start(links)
            exchange.finish()
            came = zip(links.sources, exchange.arrived, strict=True)
            right = right and all(bool((message == j + 1).all()) for j, message in came)
            exchange.close()
        return right

    def _can_share(self, *, wanted: bool) -> bool:
        """Decide whether agents of a node share memory, if that is wanted at all."""
        comm, wires = self._comm, self._wires
        # Memory that a GPU copies from and to at full speed is not to be had in a window.
        on_gpu = comm.allreduce(wires.layer is not None, MPI.LOR)
        if not wanted or wires.direct or (on_gpu and wires.transport == DEFAULT):
            return False
        reasons = list(filter(None, comm.allgather(obstacle(self._node, wires.largest))))
        if reasons:
            self.notes += (f"no shared memory within a node: {reasons[0]}",)
        return not reasons

    def _connect(self, among: frozenset[int]) -> Graph:
        """Make the graph of the links with some agents."""
        if self._way == PERSISTENT and not self._comm.allreduce(can_plan(), MPI.LAND):
            self._way = COLLECTIVE
            self.notes += ("this MPI plans no neighbourhood collective ahead: one in every round",)
        return Graph(self._comm, Edges(self.sources, self.destinations), among, self._way)

    def plan(self, dtype: torch.dtype, length: int) -> Exchange:
        """Plan the exchange of messages of ``length`` numbers, on the device of the wires.

        Raises:
            AgreedError: the messages are too long for the transport on some rank.
        """
        layer = self._wires.layer
        allocate = layer.host if layer else on_host
        if self._shares and self._has_room(length * dtype.itemsize):
            exchange = self._within_nodes(dtype, length, allocate)
            return Staged(exchange, layer) if layer else exchange
        graph = self._graph_of_all()
        meet(Tally(self._comm), graph.excess(length))
        if layer is not None and self._wires.direct:
            slots = (layer.empty(length, dtype),)
            return Direct(slots, [graph.route(slots, layer.empty)], layer, self._wires.waiting)
        slots = (allocate(length, dtype),)
        exchange = Exchange(slots, [graph.route(slots, allocate)], self._wires.waiting)
        return Staged(exchange, layer) if layer else exchange

    def _has_room(self, size: int) -> bool:
        """Tell whether messages of ``size`` bytes fit into the memory of all nodes."""
        lacks = filter(None, Tally(self._comm).everyone(shortage(self._node, size)))
        if (lack := next(lacks, None)) is None:
            return True
        self.notes += (f"messages of {size} bytes go over MPI within a node too: {lack} more",)
        return False

    def _graph_of_all(self) -> Graph:
        """Return the graph of all links, made when an exchange first needs it."""
        if self._graph is None:
            self._graph = self._connect(frozenset(range(self._comm.size)))
            self.description += f"; {SPOKEN[self._way]} where there is no room"
        return self._graph

    def _within_nodes(self, dtype: torch.dtype, length: int, allocate: Allocate) -> Exchange:
        """Plan an exchange in a window of every node, and over MPI between nodes."""
        between = self._graph_between
        meet(Tally(self._comm), between.excess(length) if between else None)
        window = Window(self._node, dtype, length)
        within = Shared(self._node, self._places, window, self._steady)
        own = window.slots(self._node.rank)
        routes = [*([between.route(own, allocate)] if between else []), within]
        return Exchange(own, routes, self._wires.waiting)

    def close(self) -> None:
        """Free the communicators, after the exchanges that were planned have been closed."""
        for graph in filter(None, (self._graph_between, self._graph)):
            graph.close()
        self._node.Free()


def _ranks_of_the_node(comm: MPI.Intracomm, part: int) -> MPI.Intracomm:
    whole = comm.Split_type(MPI.COMM_TYPE_SHARED)
    node = whole.Split(part)
    whole.Free()
    assert isinstance(node, MPI.Intracomm)
    return node
