"""Averaging by hand, through shared memory or by messages, with MPI and torch.

Of the program it has the links, the running mean and the way to wait.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import torch
from mpi4py import MPI

from sundsbo_mpi.comm.averaging import running_mean, shares
from sundsbo_mpi.comm.node import local

if TYPE_CHECKING:
    from collections.abc import Callable

    from sundsbo_mpi.topology import Links

SLOTS = 2
TAG = 2
"""The agents' words may be under way on the same communicator."""
BYTES = torch.float32.itemsize
LINE = 64 // BYTES
"""Numbers in a line of the cache: no two slots share one."""


class Windows:
    """Slots of float32 in one window; making and closing are collective.

    Two slots for each agent take turns; an empty message to a neighbour says that one is filled,
    and that the neighbour's last one is read.

    Args:
        node: All agents, on one node.
        links: The same both ways; the agents' numbers are their ranks in ``node``.
        length: Numbers in a message.
    """

    def __init__(self, node: MPI.Intracomm, links: Links, length: int) -> None:
        self._shares = shares(links.own, links.sources.values())
        self._waiting = local(node).waiting
        width = -(-length // LINE) * LINE
        near_its_owner = MPI.Info.Create({"alloc_shared_noncontig": "true"})
        self._window = MPI.Win.Allocate_shared(SLOTS * width * BYTES, BYTES, near_its_owner, node)
        near_its_owner.Free()
        self._window.Lock_all(MPI.MODE_NOCHECK)
        every = {j: self._slots(j, width) for j in (node.rank, *links.sources)}
        every[node.rank].zero_()
        self._turns = cycle(
            (every[node.rank][turn][:length], [every[j][turn][:length] for j in links.sources])
            for turn in range(SLOTS)
        )
        empty = [bytearray(0), MPI.BYTE]
        self._tokens = [node.Recv_init(empty, j, TAG) for j in links.sources]
        self._tokens += [node.Send_init(empty, j, TAG) for j in links.destinations]
        node.Barrier()
        for j in links.sources:
            every[j].sum()  # all pages are found before any round

    def _slots(self, agent: int, width: int) -> torch.Tensor:
        memory, _ = self._window.Shared_query(agent)
        return torch.frombuffer(memory, dtype=torch.float32, count=SLOTS * width).view(SLOTS, width)

    def average(self, fill: Callable[[torch.Tensor], object]) -> torch.Tensor:
        """Let a slot be written; return the weighted mean of it and the neighbours'."""
        own, arrived = next(self._turns)
        fill(own)
        self._window.Sync()
        MPI.Prequest.Startall(self._tokens)
        self._waiting.all(self._tokens)
        self._window.Sync()
        return running_mean(self._shares, own, arrived)

    def close(self) -> None:
        """Free the tokens and the window."""
        for token in self._tokens:
            token.Free()
        self._window.Unlock_all()
        self._window.Free()


class Messages:
    """Buffers of float32 and planned messages to and from all neighbours; closing is local.

    Args:
        comm: All agents.
        links: The agents' numbers are their ranks in ``comm``.
        length: Numbers in a message.
    """

    def __init__(self, comm: MPI.Intracomm, links: Links, length: int) -> None:
        self._shares = shares(links.own, links.sources.values())
        self._waiting = local(comm).waiting
        self._own = torch.zeros(length)
        self._arrived = [torch.zeros(length) for _ in links.sources]
        self._requests = [
            comm.Recv_init(row.numpy(), j, TAG)
            for j, row in zip(links.sources, self._arrived, strict=True)
        ]
        self._requests += [comm.Send_init(self._own.numpy(), j, TAG) for j in links.destinations]

    def average(self, fill: Callable[[torch.Tensor], object]) -> torch.Tensor:
        """Let the message be written; return the weighted mean of it and the neighbours'."""
        fill(self._own)
        MPI.Prequest.Startall(self._requests)
        self._waiting.all(self._requests)
        return running_mean(self._shares, self._own, self._arrived)

    def close(self) -> None:
        """Free the messages."""
        for request in self._requests:
            request.Free()
