"""The links of an agent whose neighbours may be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sundsbo_mpi.comm.transports import ONE_BY_ONE, SPOKEN
from sundsbo_mpi.comm.transports.exchange import Exchange
from sundsbo_mpi.comm.transports.messages import Allocate, OneByOne, on_host
from sundsbo_mpi.comm.transports.staging import Staged

if TYPE_CHECKING:
    import torch
    from mpi4py import MPI

    from sundsbo_mpi.comm.transports.staging import Layer
    from sundsbo_mpi.comm.waiting import Watchful
    from sundsbo_mpi.topology import Mixing


class Survivable:
    """One agent's links over a communicator that may be revoked; all methods are local.

    A message goes to every neighbour by itself, over the communicator that it was given: MPI
    promises nothing about graphs and windows once an agent is lost, and a communicator that is not
    there can neither block while it is made nor be forgotten when all are revoked.

    Args:
        comm: A communicator with one rank per agent, rank i being agent i.
        mixing: The matrices W_k, the same on all ranks.
        layer: The device of the payloads; None for host memory.
        watch: How an agent that is lost is noticed.
    """

    notes: tuple[str, ...] = ()
    description = SPOKEN[ONE_BY_ONE]

    def __init__(
        self, comm: MPI.Intracomm, mixing: Mixing, layer: Layer | None, watch: Watchful
    ) -> None:
        senders, receivers = mixing.edges().T
        self.destinations = tuple(receivers[senders == comm.rank].tolist())
        self._comm, self._layer, self._watch = comm, layer, watch

    def plan(self, dtype: torch.dtype, length: int) -> Exchange:
        """Plan the exchange of messages of ``length`` numbers, on the device of the layer."""
        if self._layer is None:
            return self._between_hosts(length, dtype, on_host)
        return Staged(self._between_hosts(length, dtype, self._layer.host), self._layer)

    def _between_hosts(self, length: int, dtype: torch.dtype, allocate: Allocate) -> Exchange:
        slots = (allocate(length, dtype),)
        everyone = frozenset(range(self._comm.size))
        route = OneByOne(self._comm, slots, allocate, everyone)
        exchange = Exchange(slots, [route], self._watch)
        self._watch.keep(exchange)
        return exchange

    def close(self) -> None:
        """Do nothing: the communicator is not ours."""
