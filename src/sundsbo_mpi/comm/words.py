"""The smallest of the agents' integers, found again and again: one word of each in every turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sundsbo_mpi.comm.waiting import Waiting

FEW = 32
"""Agents that tell each other their words directly, by messages that are planned once: one step
from all to all, long over when the words are wanted.  A reduction takes several steps, each begun
only in somebody's next call, and MPI plans it anew in every turn.  The messages grow as the square
of the agents."""
TAG = 1
"""Of no other message on the same communicator."""


class Words:
    """One agent's side; all agents take the same turns.

    Args:
        comm: A communicator with one rank per agent.
        waiting: How the others' words are waited for.
    """

    def __init__(self, comm: MPI.Intracomm, waiting: Waiting) -> None:
        self._comm, self._waiting = comm, waiting
        self._few = comm.size <= FEW
        self._said = np.zeros(1, dtype=np.int64)
        self._heard = np.zeros(comm.size if self._few else 1, dtype=np.int64)
        self._planned = self._plan() if self._few else []
        self._requests: Sequence[MPI.Request] = self._planned
        self.nbytes = self._said.nbytes * (comm.size - 1 if self._few else 1)
        """Bytes that this agent sends in a turn; of a reduction what it contributes, once."""
        waiting.keep(self)

    def _plan(self) -> list[MPI.Prequest]:
        comm = self._comm
        others = [j for j in range(comm.size) if j != comm.rank]
        arriving = [comm.Recv_init(self._heard[j : j + 1], j, TAG) for j in others]
        return arriving + [comm.Send_init(self._said, j, TAG) for j in others]

    def start(self, word: int) -> None:
        """Tell the others this agent's word; ``finish`` must follow before the next."""
        self._said[0] = word
        if self._few:
            self._heard[self._comm.rank] = word
            MPI.Prequest.Startall(self._planned)
        else:
            self._requests = [self._comm.Iallreduce(self._said, self._heard, MPI.MIN)]

    def finish(self) -> int:
        """Return the smallest word of the turn, waiting for the last one."""
        self._waiting.all(self._requests)
        return min(self._heard.tolist())

    def close(self) -> None:
        """Let go of the plans; local, between two turns."""
        for request in self._planned:
            request.Free()
        self._planned = []
