"""MPI alone, without the program's own message handling: what transports are measured beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from collections.abc import Sequence

NOBODY = MPI.PROC_NULL


class BareExchange:
    """One buffer of float32 to all destinations by a neighbourhood collective of MPI.

    Args:
        comm: A communicator of all agents.
        sources: The agents that send to this one.
        destinations: The agents to which this one sends.
        length: Numbers in every message.

    Making one, the exchanges and ``close`` are collective.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        sources: Sequence[int],
        destinations: Sequence[int],
        length: int,
    ) -> None:
        self._graph = comm.Create_dist_graph_adjacent(
            list(sources), list(destinations), reorder=False
        )
        to = ([length] * len(destinations), [0] * len(destinations))
        from_ = ([length] * len(sources), [j * length for j in range(len(sources))])
        self.sent = np.ones(length, dtype=np.float32)
        self.received = np.zeros(len(sources) * length, dtype=np.float32)
        self._send = [self.sent, to, MPI.FLOAT]
        self._receive = [self.received, from_, MPI.FLOAT]

    def blocking(self) -> None:
        """Exchange by MPI_Neighbor_alltoallv."""
        self._graph.Neighbor_alltoallv(self._send, self._receive)

    def nonblocking(self) -> None:
        """Exchange by MPI_Ineighbor_alltoallv and MPI_Wait."""
        self._graph.Ineighbor_alltoallv(self._send, self._receive).Wait()

    def close(self) -> None:
        """Free the communicator."""
        self._graph.Free()


class BarePair:
    """Messages of float32 between two agents, or nothing for an agent without a partner.

    Args:
        comm: A communicator of all agents.
        partner: The other agent, or ``NOBODY``.
        length: Numbers in every message.
    """

    def __init__(self, comm: MPI.Intracomm, partner: int, length: int) -> None:
        self._comm, self._partner = comm, partner
        self.sent, self.received = np.ones((2, length), dtype=np.float32)

    def swap(self) -> None:
        """Send to the partner and receive from it at the same time, by MPI_Sendrecv."""
        self._comm.Sendrecv(self.sent, self._partner, recvbuf=self.received, source=self._partner)


class BareSum:
    """The sum of a buffer of float32 over all agents.

    Args:
        comm: A communicator of all agents.
        length: Numbers in the buffer.
    """

    def __init__(self, comm: MPI.Intracomm, length: int) -> None:
        self._comm = comm
        self.own, self.sum = np.ones((2, length), dtype=np.float32)

    def add(self) -> None:
        """Sum up by MPI_Allreduce; collective."""
        self._comm.Allreduce(self.own, self.sum, MPI.SUM)
