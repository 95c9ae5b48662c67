"""The neighbourhood average: v_i -> sum_j w_ij v_j with one fused message per neighbour.

Everything that can be decided before the first round is planned once: the distributed graph
communicator when a ``Gossip`` is made, the buffers and the request when a payload length is first
seen.  The object holds no user data between rounds; what it returns is freshly allocated, since a
technique may remember it for as long as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from mpi4py import MPI

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.clock import Clock
    from sundsbo_mpi.topology import Weights

MPI_TYPES = {torch.float32: MPI.FLOAT, torch.float64: MPI.DOUBLE}
LARGEST_COUNT = 2**31 - 1
"""MPI-3 libraries count elements and displacements in 32-bit integers."""


@dataclass
class Traffic:
    """What one agent has sent so far; payload only, without headers."""

    rounds: int
    messages: int
    bytes_to: np.ndarray
    """Bytes sent to each neighbour, in ascending order of the neighbours, int64."""


class Plan:
    """Buffers and request for one payload length; messages are staged through host memory."""

    def __init__(self, graph: MPI.Distgraphcomm, degree: int, like: Tensor, length: int) -> None:
        if degree * length > LARGEST_COUNT:
            raise ValueError(
                f"{degree} neighbours times {length} numbers exceed the {LARGEST_COUNT} elements "
                "that one neighbourhood collective can address: take a topology with smaller "
                "degrees or a technique with fewer vectors"
            )
        on_gpu = like.device.type == "cuda"
        self.send = torch.empty(length, dtype=like.dtype, pin_memory=on_gpu)
        self.receive = torch.empty((degree, length), dtype=like.dtype, pin_memory=on_gpu)
        self.staged = on_gpu
        self.packed, self.arrived = self.send, self.receive
        if on_gpu:
            self.packed = self.send.to(like.device)
            self.arrived = self.receive.to(like.device)
        kind = MPI_TYPES[like.dtype]
        counts = [length] * degree
        # The same bytes go to every neighbour: all send displacements are zero.
        self._graph = graph
        self._message = (
            [self.send.numpy(), (counts, [0] * degree), kind],
            [self.receive.numpy(), (counts, [j * length for j in range(degree)]), kind],
        )
        self._request: MPI.Prequest | None
        try:
            self._request = graph.Neighbor_alltoallv_init(*self._message)
        except NotImplementedError:  # MPI-3
            self._request = None

    def exchange(self) -> None:
        """Send ``packed`` to every neighbour and wait for theirs to be in ``arrived``."""
        if self.staged:
            self.send.copy_(self.packed)
        if self._request is None:
            self._graph.Neighbor_alltoallv(*self._message)
        else:
            self._request.Start()
            self._request.Wait()
        if self.staged:
            self.arrived.copy_(self.receive)

    def close(self) -> None:
        """Free the persistent request."""
        if self._request is not None:
            self._request.Free()


class Gossip:
    """The planned average over one agent's neighbours.

    Args:
        comm: A communicator with one rank per agent, rank i being agent i.
        weights: The mixing matrix W, the same on all ranks.
        clock: Where the seconds of pack, wait and mix are added.

    Making one, ``average`` and ``close`` are collective.
    """

    def __init__(self, comm: MPI.Intracomm, weights: Weights, clock: Clock) -> None:
        own, others = weights.row(comm.rank)
        self.neighbours = tuple(others)
        self._own, self._weights = own, tuple(others.values())
        self._clock = clock
        self._graph = comm.Create_dist_graph_adjacent(
            list(self.neighbours), list(self.neighbours), reorder=False
        )
        sources, destinations, _ = self._graph.Get_dist_neighbors()
        if not tuple(sources) == tuple(destinations) == self.neighbours:
            raise RuntimeError(
                f"MPI reordered the neighbours {self.neighbours}: "
                f"sources {sources}, destinations {destinations}"
            )
        self._plans: dict[tuple[int, torch.dtype, torch.device], Plan] = {}
        self.traffic = Traffic(0, 0, np.zeros(len(others), dtype=np.int64))

    def average(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return sum_j w_ij v_j for every v of ``tensors``, all sent as one message.

        The terms are added in a fixed order, the agent's own first and then ascending neighbours,
        so that a run can be repeated bit for bit.

        Args:
            tensors: Flat tensors of one dtype and device, of the same lengths on all agents.
        """
        lengths = [v.numel() for v in tensors]
        plan = self._plan(tensors[0], sum(lengths))
        with self._clock("pack"):
            torch.cat(tuple(tensors), out=plan.packed)
        with self._clock("wait"):
            plan.exchange()
        with self._clock("mix"):
            mixed = plan.packed * self._own
            for w_ij, v_j in zip(self._weights, plan.arrived, strict=True):
                mixed.add_(v_j, alpha=w_ij)
        self.traffic.rounds += 1
        self.traffic.messages += len(self.neighbours)
        self.traffic.bytes_to += plan.send.nbytes
        return torch.split(mixed, lengths)

    def _plan(self, like: Tensor, length: int) -> Plan:
        key = (length, like.dtype, like.device)
        if key not in self._plans:
            self._plans[key] = Plan(self._graph, len(self.neighbours), like, length)
        return self._plans[key]

    def close(self) -> None:
        """Free the requests, then the communicator."""
        for plan in self._plans.values():
            plan.close()
        self._plans.clear()
        self._graph.Free()
