"""The neighbourhood average: v_i -> sum_j w_ij v_j with one fused message per neighbour.

Everything that can be decided before the first round is planned once: the distributed graph
communicator of all links that are ever used when a ``Gossip`` is made, the buffers and, where W
does not change, the request when a payload length is first seen.  The object holds no user data
between rounds; what it returns is freshly allocated, since a technique may remember it for as long
as it likes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from mpi4py import MPI

from sundsbo_mpi.outgoing import Outgoing

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.clock import Clock
    from sundsbo_mpi.topology import Links, Mixing

MPI_TYPES = {
    torch.float32: MPI.FLOAT,
    torch.float64: MPI.DOUBLE,
    torch.int16: MPI.INT16_T,
    torch.uint8: MPI.BYTE,
}
LARGEST_COUNT = 2**31 - 1
"""MPI-3 libraries count elements and displacements in 32-bit integers."""


@dataclass
class Traffic:
    """What one agent has sent so far; payload only, without headers."""

    rounds: int
    messages: int
    bytes_to: np.ndarray
    """Bytes sent to each agent of ``Gossip.neighbours``, in their order, int64."""


class Plan:
    """Buffers for one payload length and number of sources; staged through host memory."""

    def __init__(self, graph: MPI.Distgraphcomm, sources: int, like: Tensor, length: int) -> None:
        if sources * length > LARGEST_COUNT:
            raise ValueError(
                f"{sources} neighbours times {length} numbers exceed the {LARGEST_COUNT} elements "
                "that one neighbourhood collective can address: take a topology with smaller "
                "degrees or a technique with fewer vectors"
            )
        on_gpu = like.device.type == "cuda"
        self.send = torch.empty(length, dtype=like.dtype, pin_memory=on_gpu)
        self.receive = torch.empty((sources, length), dtype=like.dtype, pin_memory=on_gpu)
        self.staged = on_gpu
        self.packed, self.arrived = self.send, self.receive
        if on_gpu:
            self.packed = self.send.to(like.device)
            self.arrived = self.receive.to(like.device)
        self._kind = MPI_TYPES[like.dtype]
        self._graph = graph
        self._request: MPI.Prequest | None = None
        self._running: Sequence[MPI.Request] = ()

    def persist(self, receivers: int) -> None:
        """Plan one request for all exchanges with all neighbours of the graph; collective."""
        sources, length = self.receive.shape
        # The same bytes go to every neighbour: all send displacements are zero.
        to = ([length] * receivers, [0] * receivers)
        from_ = ([length] * sources, [j * length for j in range(sources)])
        with suppress(NotImplementedError):  # MPI-3: the messages go one by one
            self._request = self._graph.Neighbor_alltoallv_init(
                [self.send.numpy(), to, self._kind], [self.receive.numpy(), from_, self._kind]
            )

    def start(self, links: Links) -> None:
        """Start to send ``packed`` to the destinations and to receive from the sources."""
        if self.staged:
            self.send.copy_(self.packed)
        if self._request is None:
            self._running = self._start_one_by_one(links)
        else:
            self._request.Start()
            self._running = [self._request]

    def _start_one_by_one(self, links: Links) -> list[MPI.Request]:
        # A neighbourhood collective would send empty messages along the links that rest.
        graph, kind, sent = self._graph, self._kind, self.send.numpy()
        rows = zip(self.receive.numpy(), links.sources, strict=True)
        requests = [graph.Irecv([row, kind], j) for row, j in rows]
        return requests + [graph.Isend([sent, kind], j) for j in links.destinations]

    def finish(self) -> None:
        """Wait for the sources' messages to be in ``arrived``."""
        MPI.Request.Waitall(self._running)
        if self.staged:
            self.arrived.copy_(self.receive)

    def close(self) -> None:
        """Free the persistent request."""
        if self._request is not None:
            self._request.Free()


class Posted(NamedTuple):
    """A message on its way."""

    plan: Plan
    lengths: list[int]
    decode: Callable[[Tensor], Tensor]


class Gossip:
    """The planned average over one agent's neighbours.

    Args:
        comm: A communicator with one rank per agent, rank i being agent i.
        mixing: The matrices W_k, the same on all ranks.
        clock: Where the seconds of pack, wait and mix are added.

    Making one, ``average`` and ``close`` are collective.
    """

    def __init__(self, comm: MPI.Intracomm, mixing: Mixing, clock: Clock) -> None:
        self._agent, self._mixing, self._clock = comm.rank, mixing, clock
        senders, receivers = mixing.edges().T
        self.neighbours = tuple(receivers[senders == comm.rank].tolist())
        sources = tuple(np.sort(senders[receivers == comm.rank]).tolist())
        self._graph = comm.Create_dist_graph_adjacent(
            list(sources), list(self.neighbours), reorder=False
        )
        found, destinations, _ = self._graph.Get_dist_neighbors()
        if (tuple(found), tuple(destinations)) != (sources, self.neighbours):
            raise RuntimeError(
                f"MPI reordered the sources {sources} to {found}, "
                f"or the destinations {self.neighbours} to {destinations}"
            )
        self._plans: dict[tuple[int, int, torch.dtype, torch.device], Plan] = {}
        self.traffic = Traffic(0, 0, np.zeros(len(self.neighbours), dtype=np.int64))
        self._take(0)

    def turn_to(self, k: int) -> None:
        """Mix with W_k from now on; local."""
        if self._mixing.turn(k) != self._turn:
            with self._clock("mix"):
                self._take(k)

    def _take(self, k: int) -> None:
        self._turn = self._mixing.turn(k)
        self._links = self._mixing.links(self._agent, k)
        self._active = np.isin(self.neighbours, self._links.destinations)

    def post(self, outgoing: Outgoing) -> None:
        """Send one message to every neighbour; ``collect`` must follow."""
        lengths = [v.numel() for v in outgoing.tensors]
        plan = self._plan(outgoing.tensors[0], sum(lengths))
        with self._clock("pack"):
            torch.cat(outgoing.tensors, out=plan.packed)
        with self._clock("wait"):
            plan.start(self._links)
        self._posted = Posted(plan, lengths, outgoing.decode)
        self.traffic.rounds += 1
        self.traffic.messages += len(self._links.destinations)
        self.traffic.bytes_to += plan.send.nbytes * self._active

    def collect(self) -> tuple[Tensor, ...]:
        """Return sum_j w_ij v_j for what was posted, v being the message decoded.

        The result is cut up as the message was, if it is as long.

        The terms are added in a fixed order, the agent's own first and then ascending neighbours,
        so that a run can be repeated bit for bit.
        """
        plan, lengths, decode = self._posted
        with self._clock("wait"):
            plan.finish()
        with self._clock("mix"):
            mixed = decode(plan.packed) * self._links.own
            for w_ij, m_j in zip(self._links.sources.values(), plan.arrived, strict=True):
                mixed.add_(decode(m_j), alpha=w_ij)
        whole = len(mixed) == sum(lengths)
        return torch.split(mixed, lengths) if whole else (mixed,)

    def average(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return sum_j w_ij v_j for every v of ``tensors``: post, then collect."""
        self.post(Outgoing(tuple(tensors)))
        return self.collect()

    def _plan(self, like: Tensor, length: int) -> Plan:
        sources = len(self._links.sources)
        key = (sources, length, like.dtype, like.device)
        if key not in self._plans:
            self._plans[key] = Plan(self._graph, sources, like, length)
            if self._mixing.steady:
                self._plans[key].persist(len(self.neighbours))
        return self._plans[key]

    def close(self) -> None:
        """Free the requests, then the communicator."""
        for plan in self._plans.values():
            plan.close()
        self._plans.clear()
        self._graph.Free()
