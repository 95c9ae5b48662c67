"""The links of one agent, and over which routes they go: decided once, when a run starts."""

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
    TRANSPORTS,
    Transport,
)
from sundsbo_mpi.comm.transports.exchange import Exchange, Route
from sundsbo_mpi.comm.transports.messages import (
    Allocate,
    Collective,
    OneByOne,
    Persistent,
    can_plan,
    excess,
    on_host,
)
from sundsbo_mpi.comm.transports.shared import Shared, Window, obstacle, shortage
from sundsbo_mpi.comm.transports.staging import Direct, Layer, Staged
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import Links

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from sundsbo_mpi.comm.waiting import Watchful
    from sundsbo_mpi.topology import Mixing

TRIED_LENGTHS = (10, 300_000)
"""Numbers in the messages of the trial of device buffers: MPI moves short ones in another way."""


@dataclass(frozen=True)
class Wires:
    """What was asked of the links.

    Args:
        transport: A name in ``TRANSPORTS``.
        largest: Bytes of the longest message, as far as known; shared memory must hold it.
        layer: The device of the payloads; None for host memory.
        direct: Hand device buffers to MPI, from agent to agent; needs an MPI that can take them.
        part: Ranks of one node with other numbers than this one's count as on another node.
        watch: How agents that are lost are noticed, where the others shall go on without them; then
            messages go one by one, whatever ``transport`` says.
    """

    transport: str = DEFAULT
    largest: int = 0
    layer: Layer | None = None
    direct: bool = False
    part: int = 0
    watch: Watchful | None = None


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
    """What a user must know about the choice; the same on all ranks."""

    def __init__(self, comm: MPI.Intracomm, mixing: Mixing, wires: Wires) -> None:
        senders, receivers = mixing.edges().T
        self.destinations = tuple(receivers[senders == comm.rank].tolist())
        self.sources = tuple(np.sort(senders[receivers == comm.rank]).tolist())
        self._comm, self._wires, self._steady = comm, wires, mixing.steady
        self._node = _ranks_of_the_node(comm, wires.part)
        self._places = {agent: place for place, agent in enumerate(self._node.allgather(comm.rank))}
        hosts = np.array(comm.allgather(min(self._places)))
        near = hosts[senders] == hosts[receivers]
        self._routes = self._choose(near)
        self.description = self._routes.describe(bool(near.any()), not near.all())
        self._far = frozenset(range(comm.size))
        if self._shares:
            self._far -= self._places.keys()
        self._graph: MPI.Distgraphcomm | None = None
        if not (self._shares and near.all()):
            self._graph = _connect(comm, self.sources, self.destinations, self._far)
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
            exchange = self.plan(layer.empty(0, torch.float32), length)
            layer.copy(exchange.packed, torch.full((length,), float(rank + 1)))
            exchange.start(links)
            exchange.finish()
            came = zip(links.sources, exchange.arrived, strict=True)
            right = right and all(bool((message == j + 1).all()) for j, message in came)
            exchange.close()
        return right

    def _choose(self, near: NDArray[np.bool_]) -> Transport:
        """Decide on the routes; ``near`` says of every link whether it is within a node."""
        comm, asked, wires = self._comm, TRANSPORTS[self._wires.transport], self._wires
        # Memory that a GPU copies from and to at full speed is not to be had in a window.
        on_gpu = comm.allreduce(wires.layer is not None, MPI.LOR)
        wanted = bool(near.any()) and asked.near == SHARED and not wires.direct
        if on_gpu and wires.transport == DEFAULT:
            wanted = False
        found = comm.allgather(obstacle(self._node, wires.largest)) if wanted else []
        reasons = [reason for reason in found if reason]
        if reasons:
            self.notes = (f"no shared memory within a node: {reasons[0]}",)
        self._shares = wanted and not reasons
        far = asked.far if self._steady and not wires.direct else ONE_BY_ONE
        needed = not (self._shares and near.all())
        if far == PERSISTENT and needed and not comm.allreduce(can_plan(), MPI.LAND):
            far = COLLECTIVE
            self.notes += ("this MPI plans no neighbourhood collective ahead: one in every round",)
        return Transport(SHARED if self._shares else far, far, asked.about)

    def plan(self, like: Tensor, length: int) -> Exchange:
        """Plan the exchange of messages of ``length`` numbers of the dtype and device of ``like``.

        Raises:
            AgreedError: the messages are too long for the transport on some rank.
        """
        meet(Tally(self._comm), self._complaint_of_length(length, length * like.dtype.itemsize))
        layer = self._wires.layer
        if layer is None:
            return self._between_hosts(like.dtype, length, on_host)
        if self._wires.direct:
            slots = (layer.empty(length, like.dtype),)
            return Direct(slots, [self._messages(slots, layer.empty)], layer)
        return Staged(self._between_hosts(like.dtype, length, layer.host), layer)

    def _complaint_of_length(self, length: int, size: int) -> str | None:
        if self._shares and (lack := shortage(self._node, size)):
            return f"{lack} more: enlarge it, or take --transport persistent."
        if self._graph is not None and self._routes.far != ONE_BY_ONE:
            return excess(self._graph, length)
        return None

    def _between_hosts(self, dtype: torch.dtype, length: int, allocate: Allocate) -> Exchange:
        if not self._shares:
            slots = (allocate(length, dtype),)
            return Exchange(slots, [self._messages(slots, allocate)])
        window = Window(self._node, dtype, length)
        within = Shared(self._node, self._places, window, self._steady)
        own = window.slots(self._node.rank)
        between = [] if self._graph is None else [self._messages(own, allocate)]
        return Exchange(own, [*between, within])

    def _messages(self, slots: tuple[Tensor, ...], allocate: Allocate) -> Route:
        assert self._graph is not None
        if self._routes.far == ONE_BY_ONE:
            return OneByOne(self._graph, slots, allocate, self._far)
        kind = Collective if self._routes.far == COLLECTIVE else Persistent
        return kind(self._graph, slots, allocate)

    def close(self) -> None:
        """Free the communicators, after the exchanges that were planned have been closed."""
        if self._graph is not None:
            self._graph.Free()
        self._node.Free()


def _ranks_of_the_node(comm: MPI.Intracomm, part: int) -> MPI.Intracomm:
    whole = comm.Split_type(MPI.COMM_TYPE_SHARED)
    node = whole.Split(part)
    whole.Free()
    assert isinstance(node, MPI.Intracomm)
    return node


def _connect(
    comm: MPI.Intracomm,
    sources: tuple[int, ...],
    destinations: tuple[int, ...],
    among: frozenset[int],
) -> MPI.Distgraphcomm:
    """Make the graph of an agent's links with some agents; collective over ``comm``."""
    from_ = [j for j in sources if j in among]
    to = [j for j in destinations if j in among]
    graph = comm.Create_dist_graph_adjacent(from_, to, reorder=False)
    found = graph.Get_dist_neighbors()[:2]
    if tuple(map(list, found)) != (from_, to):
        raise RuntimeError(f"MPI reordered the sources and destinations {(from_, to)} to {found}")
    return graph
