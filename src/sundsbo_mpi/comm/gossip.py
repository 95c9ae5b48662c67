"""The neighbourhood average: v_i -> sum_j w_ij v_j with one fused message per neighbour.

Everything that can be decided before the first round is planned once: the links when a ``Gossip``
is made, the buffers and requests when a payload length is first seen.  The object holds no user
data between rounds; what it returns is freshly allocated, since a technique may remember it for as
long as it likes.  (After ``heap.prepare_heap`` the C library hands freed blocks out again without
returning their pages: the runs that were measured took next to no page faults here.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sundsbo_mpi.comm.averaging import average_over
from sundsbo_mpi.comm.transports.network import Network, Wires
from sundsbo_mpi.comm.transports.survivable import Survivable
from sundsbo_mpi.comm.waiting import Watchful
from sundsbo_mpi.comm.writing import write
from sundsbo_mpi.outgoing import Outgoing, as_sent

if TYPE_CHECKING:
    import torch
    from mpi4py import MPI
    from torch import Tensor

    from sundsbo_mpi.clock import Clock
    from sundsbo_mpi.comm.transports.exchange import Connection, Exchange
    from sundsbo_mpi.topology import Mixing


class Earlier(NamedTuple):
    """What an agent has sent in an earlier part of its run, perhaps over other links."""

    network: int
    """Bytes to agents on other nodes."""
    shared: int
    """Bytes to agents on the same node."""
    bytes_to: Mapping[str, int]
    """By the receiver's number as text, also those that are no neighbours any more."""


@dataclass
class Traffic:
    """What one agent has sent so far; payload only, without headers."""

    rounds: int
    messages: int
    bytes_to: np.ndarray
    """Bytes sent to each agent of ``Gossip.neighbours``, in their order, int64."""
    begun: np.ndarray
    """What ``bytes_to`` was when this part of the run began."""
    earlier: Earlier = field(default_factory=lambda: Earlier(0, 0, {}))


class Plan(NamedTuple):
    """How messages of one dtype travel that have parts of these lengths."""

    exchange: Exchange
    lengths: tuple[int, ...]
    places: Sequence[Sequence[Tensor]]
    """Of the parts, by slot of the exchange."""


class Posted(NamedTuple):
    """A message on its way."""

    plan: Plan
    decode: Callable[[Tensor], Tensor]


class Gossip:
    """The planned average over one agent's neighbours.

    Args:
        comm: A communicator with one rank per agent, rank i being agent i.
        mixing: The matrices W_k, the same on all ranks.
        clock: Where the seconds of pack, post, wait and mix are added.
        wires: What the messages shall travel over.

    Making one, ``average`` and ``close`` are collective; so is ``post`` where it is the first of
    its length and dtype, since the exchange is planned then.

    Raises (``post`` and ``average``, on all ranks):
        AgreedError: such messages are too long for the transport.
    """

    def __init__(
        self, comm: MPI.Intracomm, mixing: Mixing, clock: Clock, wires: Wires | None = None
    ) -> None:
        self._agent, self._mixing = comm.rank, mixing
        self._pack, self._post, self._wait, self._mix = map(clock, ("pack", "post", "wait", "mix"))
        self.network = _connected(comm, mixing, wires or Wires())
        self.neighbours = self.network.destinations
        self._exchanges: dict[tuple[int, torch.dtype], Exchange] = {}
        self._plans: dict[tuple[tuple[int, ...], torch.dtype], Plan] = {}
        self._posted: Posted | None = None
        none = np.zeros(len(self.neighbours), dtype=np.int64)
        self._traffic = Traffic(0, 0, none, none.copy())
        self._rounds = 0
        """Over the present links, not entered in the traffic yet."""
        self._bytes = 0
        """Sent to each receiver in them."""
        self._take(0)

    def turn_to(self, k: int) -> None:
        """Mix with W_k from now on; local."""
        if self._mixing.turn(k) != self._turn:
            with self._mix:
                self._take(k)

    def _take(self, k: int) -> None:
        self._count()
        self._turn = self._mixing.turn(k)
        self._links = self._mixing.links(self._agent, k)
        self._average = average_over(self._links)
        self._active = np.isin(self.neighbours, self._links.destinations)

    def post(self, outgoing: Outgoing) -> None:
        """Send one message to every neighbour; ``collect`` must follow."""
        plan = self._planned(outgoing)
        exchange = plan.exchange
        with self._pack:
            write(outgoing.parts, plan.places[exchange.slot])
        with self._post:
            exchange.start(self._links)
        self._posted = Posted(plan, outgoing.decode)
        self._rounds += 1
        self._bytes += exchange.nbytes

    @property
    def traffic(self) -> Traffic:
        """What has been sent until now; later rounds are entered when it is asked for again."""
        self._count()
        return self._traffic

    def _count(self) -> None:
        """Enter what was sent over the present links."""
        if self._rounds:
            self._traffic.rounds += self._rounds
            self._traffic.messages += self._rounds * len(self._links.destinations)
            self._traffic.bytes_to += self._bytes * self._active
            self._rounds = self._bytes = 0

    def progress(self) -> bool:
        """Test once whether ``collect`` would find all messages there, which helps MPI along.

        Another thread may call it between ``post`` and ``collect`` while this one is not in MPI.
        """
        return self._posted is None or self._posted.plan.exchange.over()

    def collect(self) -> tuple[Tensor, ...]:
        """Return sum_j w_ij v_j for what was posted, v being the message decoded.

        The result is cut up as the message was, if it is as long.

        The terms come in a fixed order, the agent's own first and then ascending neighbours, so
        that a run can be repeated bit for bit, whatever the transport.
        """
        assert self._posted is not None
        ((exchange, lengths, _), decode), self._posted = self._posted, None
        with self._wait:
            exchange.finish()
        with self._mix:
            own, arrived = exchange.own, iter(exchange.arrived)
            if decode is not as_sent:
                own, arrived = decode(own), map(decode, arrived)
            mixed = self._average(own, arrived)
        if len(lengths) == 1 or mixed.numel() != sum(lengths):
            return (mixed,)
        return mixed.split_with_sizes(lengths)

    def average(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Return sum_j w_ij v_j for every v of ``tensors``: post, then collect."""
        self.post(Outgoing(tuple(tensors)))
        return self.collect()

    def _planned(self, outgoing: Outgoing) -> Plan:
        lengths, dtype = key = outgoing.lengths, outgoing.dtype
        if (plan := self._plans.get(key)) is None:
            exchange = self._exchange_of(sum(lengths), dtype)
            plan = self._plans[key] = Plan(exchange, lengths, exchange.cut(lengths))
        return plan

    def _exchange_of(self, length: int, dtype: torch.dtype) -> Exchange:
        if (length, dtype) not in self._exchanges:
            self._exchanges[length, dtype] = self.network.plan(dtype, length)
        return self._exchanges[length, dtype]

    def close(self) -> None:
        """Free the requests and windows, then the communicators."""
        for exchange in self._exchanges.values():
            exchange.close()
        self._exchanges, self._plans, self._posted = {}, {}, None
        self.network.close()


def _connected(comm: MPI.Intracomm, mixing: Mixing, wires: Wires) -> Connection:
    if isinstance(wires.waiting, Watchful):
        return Survivable(comm, mixing, wires.layer, wires.waiting)
    return Network(comm, mixing, wires)
