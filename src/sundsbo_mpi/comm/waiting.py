"""How an agent waits for the others: for as long as it takes, or until one of them is lost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from mpi4py import MPI

EAGER_LOOKS = 200
"""At requests, before looking at them becomes less frequent."""
FEW_LOOKS = 30
"""The same where a look takes the core from an agent that has work to do."""
PAUSE_SECONDS = 1e-4
FIRST_PAUSE_SECONDS = 5e-5
"""Little beside what the other agents of the core do meanwhile."""
LONGEST_PAUSE_SECONDS = 1e-3
"""Pauses double up to this: the more agents share a core, the longer each of them has to wait."""


class Waiting(Protocol):
    """A way to wait."""

    def do(self, comm: MPI.Intracomm, collective: str, *arguments: Any) -> None:
        """Take part in a collective operation by its name in mpi4py, such as "Allreduce"."""

    def keep(self, thing: object) -> None:
        """Keep a request until it is complete, or what owns the buffers of many."""

    def all(self, requests: Sequence[MPI.Request]) -> None:
        """Wait until requests are complete."""


class Patient:
    """Waits inside MPI, for as long as it takes: for good where another agent is lost."""

    def do(self, comm: MPI.Intracomm, collective: str, *arguments: Any) -> None:
        """Call the blocking operation."""
        getattr(comm, collective)(*arguments)

    def keep(self, thing: object) -> None:
        """Do nothing: whoever waits to the end keeps it."""

    def all(self, requests: Sequence[MPI.Request]) -> None:
        """Wait for all at once."""
        MPI.Request.Waitall(requests)


class Sparing(Patient):
    """Looks a few times, then less and less often: the core is free for other agents in between.

    A rank that waits inside MPI keeps looking.  Where ranks take turns on a core, even one that
    offers it to the others after every look takes a part of their time, and of the core's cache.
    Blocking collectives, such as those of evaluations, wait inside MPI all the same.
    """

    def all(self, requests: Sequence[MPI.Request]) -> None:
        """Wait for one after the other: a look at any lets MPI move all of them."""
        looks, pause = 0, FIRST_PAUSE_SECONDS
        for request in requests:
            while not request.Test():
                looks += 1
                if looks > FEW_LOOKS:
                    time.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


class Watchful:
    """Never blocks inside MPI: looks at requests, and at whether an agent was found to be lost.

    An operation fails on those who notice a loss; they revoke the communicator, and everybody else
    notices that.  A blocking operation may miss it: one that waits for an agent that is there, but
    that has given up on the same operation, can stay blocked for ever.

    What a loss leaves incomplete is given up: it is neither cancelled nor freed, and as MPI may
    still write to its buffers, they are kept until the program ends.

    Args:
        comm: What is revoked where an agent is lost.
        before: The one that waited before a loss; what it has given up is kept.

    Raises (both ways to wait):
        MPI.Exception: an agent was lost.
    """

    def __init__(self, comm: MPI.Intracomm, before: Watchful | None = None) -> None:
        self._comm, self._before = comm, before
        self._kept: list[object] = []

    def do(self, comm: MPI.Intracomm, collective: str, *arguments: Any) -> None:
        """Start the nonblocking operation and watch it."""
        request = getattr(comm, f"I{collective.lower()}")(*arguments)
        self.keep(request)
        self.all([request])

    def keep(self, thing: object) -> None:
        """Keep a request until it is complete, or what owns the buffers of many."""
        # A request that was found complete is false.
        self._kept = [kept for kept in self._kept if kept]
        self._kept.append(thing)

    def all(self, requests: Sequence[MPI.Request]) -> None:
        """Look at the requests until all are complete or the communicator is revoked."""
        looks = 0
        while requests := [request for request in requests if not request.Test()]:
            if self._comm.Is_revoked():
                raise MPI.Exception(MPI.ERR_REVOKED)
            looks += 1
            time.sleep(PAUSE_SECONDS if looks > EAGER_LOOKS else 0)


PATIENT, SPARING = Patient(), Sparing()
