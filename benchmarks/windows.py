"""Averaging within a node by hand: shared memory of MPI and torch, and nothing of the program.

Two slots for each agent take turns; an empty message to a neighbour says that one is filled, and
that the neighbour's last one is read.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

import torch
from mpi4py import MPI

from sundsbo_mpi.topology import Links

SLOTS = 2
BYTES = torch.float32.itemsize


class Windows:
    """Slots of float32 in one window; making and closing are collective.

    Args:
        node: All agents, on one node.
        links: To those whose numbers in ``node`` are theirs in the network.
        length: Numbers in a slot.
        filling: Takes a slot of one's own and returns what fills it.
    """

    def __init__(
        self,
        node: MPI.Intracomm,
        links: Links,
        length: int,
        filling: Callable[[torch.Tensor], Callable[[], object]],
    ) -> None:
        self._window = MPI.Win.Allocate_shared(SLOTS * length * BYTES, BYTES, comm=node)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        every = {j: self._slots(j, length) for j in (node.rank, *links.sources)}
        own = every[node.rank].zero_()
        self._turns = cycle(
            (filling(own[turn]), own[turn], [every[j][turn] for j in links.sources])
            for turn in range(SLOTS)
        )
        self._shares = []
        omega = links.own
        for w_ij in links.sources.values():
            omega += w_ij
            self._shares.append(w_ij / omega)
        empty = [bytearray(0), MPI.BYTE]
        self._tokens = [node.Recv_init(empty, j) for j in links.sources]
        self._tokens += [node.Send_init(empty, j) for j in links.destinations]
        node.Barrier()

    def _slots(self, agent: int, length: int) -> torch.Tensor:
        memory, _ = self._window.Shared_query(agent)
        return torch.frombuffer(memory, dtype=torch.float32).view(SLOTS, length)

    def average(self) -> torch.Tensor:
        """Fill a slot and return the weighted mean of it and the neighbours'."""
        fill, own, arrived = next(self._turns)
        fill()
        self._window.Sync()
        MPI.Prequest.Startall(self._tokens)
        MPI.Request.Waitall(self._tokens)
        self._window.Sync()
        mean = own.lerp(arrived[0], self._shares[0])
        for share, v_j in zip(self._shares[1:], arrived[1:], strict=True):
            mean.lerp_(v_j, share)
        return mean

    def close(self) -> None:
        """Free the tokens and the window."""
        for token in self._tokens:
            token.Free()
        self._window.Unlock_all()
        self._window.Free()
