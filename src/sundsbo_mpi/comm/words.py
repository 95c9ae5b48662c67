"""The smallest of the agents' integers, found again and again: one word of each in every turn.

A word is known to all after a few steps.  In step s agent i tells what it knows, the smallest of
the words that have come to it so far, to the agents i + j r^s, 0 < j < r, and hears it from those
at i - j r^s (modulo n).  It then knows of the r^(s+1) agents up to itself; that some of them may
have been counted twice changes no minimum.

A turn does one step of every word that is on its way: what an agent tells in it was known to it
when the turn began, and nobody waits for what others have yet to hear.  All messages are planned
once.

Source: Hoefler, Mehlan, Mietke and Rehm (2006), n-way dissemination, a barrier.  Differences:
    1. Words travel rather than empty messages, and the smallest is found.
    2. The steps of several words overlap.
"""

from __future__ import annotations

from itertools import accumulate, count, pairwise
from typing import TYPE_CHECKING

import numpy as np
from mpi4py import MPI

if TYPE_CHECKING:
    from sundsbo_mpi.comm.waiting import Waiting

RADIX = 32
"""The largest r.  So few agents tell each other in one step, long over when the words are wanted;
of more, all telling all would cost the square of their number."""
TAG = 1
"""Of no other message on the same communicator."""
NOTHING = 2**63 - 1
"""Larger than any word."""


def distances(agents: int) -> list[list[int]]:
    """Return how far from itself an agent tells what it knows, step by step; steps are few."""
    steps = next(s for s in count(1) if RADIX**s >= agents)
    radix = next(r for r in count(1) if r**steps >= agents)
    return [[j * radix**s for j in range(1, radix) if j * radix**s < agents] for s in range(steps)]


class Words:
    """One agent's side; all agents take the same turns.

    ``start``, ``finish`` and ``settle`` are collective.

    Args:
        comm: A communicator with one rank per agent.
        waiting: How the others' words are waited for.

    Raises (``finish`` and ``settle``, where ``waiting`` watches for it):
        MPI.Exception: an agent was lost.
    """

    def __init__(self, comm: MPI.Intracomm, waiting: Waiting) -> None:
        self._waiting = waiting
        told = distances(comm.size)
        self.steps = len(told)
        """Turns that a word takes to be known to all."""
        bounds = accumulate((1 + len(far) for far in told), initial=0)
        self._parts = list(pairwise(bounds))
        """Of each step, where in ``_words`` the agent's own is, and then those that it hears."""
        self._words = np.full(self._parts[-1][1], NOTHING, dtype=np.int64)
        self._planned = self._plan(comm, told)
        self._on_their_way = self._none()
        self.nbytes = self._words.itemsize * sum(map(len, told))
        """Bytes that this agent sends in a turn."""
        waiting.keep(self)

    def _plan(self, comm: MPI.Intracomm, told: list[list[int]]) -> list[MPI.Prequest]:
        arriving, leaving = [], []
        for (own, _), far in zip(self._parts, told, strict=True):
            for place, distance in enumerate(far, own + 1):
                source, destination = ((comm.rank + d) % comm.size for d in (-distance, distance))
                arriving.append(comm.Recv_init(self._words[place : place + 1], source, TAG))
                leaving.append(comm.Send_init(self._words[own : own + 1], destination, TAG))
        return arriving + leaving

    def _none(self) -> list[int]:
        return [NOTHING] * (self.steps - 1)

    def start(self, word: int) -> None:
        """Tell others this agent's word, and what it knows; ``finish`` must follow."""
        for (own, _), known in zip(self._parts, [word, *self._on_their_way], strict=True):
            self._words[own] = known
        MPI.Prequest.Startall(self._planned)

    def finish(self) -> int:
        """Wait for the last word of the turn; return the smallest of ``steps - 1`` turns before.

        In the first turns, when none was said so long ago, it is ``NOTHING``.
        """
        self._waiting.all(self._planned)
        words: list[int] = self._words.tolist()
        *self._on_their_way, known_to_all = [min(words[a:b]) for a, b in self._parts]
        return known_to_all

    def settle(self, word: int) -> int:
        """Take as many turns as a word needs; return the smallest.  None is on its way then.

        It comes between two turns; words on their way are void.
        """
        for _ in range(self.steps):
            self.start(word)
            known_to_all = self.finish()
        self._on_their_way = self._none()
        return known_to_all

    def close(self) -> None:
        """Let go of the plans; local, between two turns."""
        for request in self._planned:
            request.Free()
        self._planned = []
