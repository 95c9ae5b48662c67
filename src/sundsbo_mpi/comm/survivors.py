"""Going on without the agents that are lost, by MPI's user-level failure mitigation (ULFM).

Agents live on a communicator until one of them is lost, and those that are left on another:

1. Whoever meets an error of MPI's revokes the communicator; the others notice, see ``Watchful``.
   Any error counts: what a loss looks like depends on what it interrupts.
2. All that are left agree that they are not done, also with those who had come to their end.
3. They shrink the communicator and start over on the new one.

So nobody leaves before everybody is done.  An agent may be lost at any point of this: the agreement
and the shrinking work among those who are left, and step 1 follows on the new communicator.

MPI_Finalize is left out: Open MPI's launcher may let those who are left wait there for those who
are not, above all shortly after a loss.  In its place there is one more agreement, since the
launcher ends the job when the first process leaves with a status that is not 0.

Source: Bland, Bouteiller, Herault, Bosilca, Dongarra (2013), "Post-failure recovery of MPI
communication capability", IJHPCA 27(3).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar, cast

from mpi4py import MPI

from sundsbo_mpi.comm import world
from sundsbo_mpi.comm.launcher import OPENMPI_MPIRUN, find_launcher
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.waiting import Waiting, Watchful
from sundsbo_mpi.errors import AgreedError, DivergedError

T = TypeVar("T")

ENABLED = "OMPI_MCA_mpi_ft_enable"
"""Set by mpirun --with-ft; without it the functions are there, but do nothing for those left."""


def fault_tolerance() -> str | None:
    """Say why this job cannot go on without an agent that is lost, if it cannot; local."""
    if not _offered():
        library = MPI.get_vendor()[0]
        return f"{library} offers no fault tolerance: take Open MPI 5 and its mpirun --with-ft ulfm"
    launcher = find_launcher().name
    enabled = os.environ.get(ENABLED, "0").lower() not in ("0", "false", "no")
    if launcher == OPENMPI_MPIRUN and enabled:
        return None
    return (
        f"the job was started by {launcher} without fault tolerance: start it with "
        "mpirun --with-ft ulfm"
    )


def _offered() -> bool:
    """Tell whether the library has the functions at all."""
    probe = MPI.COMM_SELF.Dup()
    try:
        probe.Revoke()
    except (NotImplementedError, MPI.Exception):
        return False
    finally:
        probe.Free()
    return True


@dataclass(frozen=True)
class Survivors:
    """The agents that are left, one on each rank of a communicator of their own."""

    comm: MPI.Intracomm
    agents: tuple[int, ...]
    """The number that each rank's agent had in the beginning, ascending."""
    waiting: Waiting
    """How this agent waits for the others."""

    @property
    def watched(self) -> bool:
        """Whether a loss is noticed; else all stay or the job ends."""
        return isinstance(self.waiting, Watchful)

    @property
    def tally(self) -> Tally:
        """Their collective operations, which raise MPI.Exception where one of them is lost."""
        return Tally(self.comm, self.waiting)

    def agree(self, *, done: bool) -> bool:
        """Return whether all are done and none was lost, alike on all that are left; collective."""
        try:
            return bool(self.comm.Agree(int(done)))
        except MPI.Exception:  # that somebody was lost, which all are told alike
            return False

    def shrunk(self) -> Self:
        """Return those who are left of these, who were watched; collective among them."""
        assert isinstance(self.waiting, Watchful)
        comm = cast("MPI.Intracomm", self.comm.Shrink())
        places = comm.Get_group().Translate_ranks(None, self.comm.Get_group())
        agents = tuple(self.agents[place] for place in places)
        return type(self)(comm, agents, Watchful(comm, self.waiting))


def endure(everyone: Survivors, live: Callable[[Survivors], T]) -> T:
    """Do something together with those who are left until it comes to its end; collective.

    ``live`` is called with all agents, and after every loss again, with those who are left: what it
    returns, or raises on all agents together, holds once all have come there.  It starts over from
    whatever it has kept, and must not go on using a communicator of an earlier call.  The old ones
    are not freed, which would be collective.

    Raises:
        AgreedError: ``live`` has raised it.
        DivergedError: ``live`` has raised it.
        MPI.Exception: there was an error, but nobody was lost.
    """
    here = everyone

    def farewell() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        here.agree(done=True)

    world.part_by(farewell)
    while True:
        error: Exception | None = None
        try:
            result = live(here)
        except MPI.Exception as trouble:
            here.comm.Revoke()
            error = trouble
        except (AgreedError, DivergedError) as end:
            error = end
        if here.agree(done=not isinstance(error, MPI.Exception)):
            if error is not None:
                raise error
            return result
        left = here.shrunk()
        if isinstance(error, MPI.Exception) and left.agents == here.agents:
            raise error
        here = left
