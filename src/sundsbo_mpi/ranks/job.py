"""How a job of several ranks begins and ends: together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from sundsbo_mpi.comm import ending, world
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.errors import AgreedError, DivergedError
from sundsbo_mpi.ranks.agreement import agree, meet
from sundsbo_mpi.versions import versions

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")


def do_together(work: Callable[[MPI.Intracomm], T]) -> T:
    """Start MPI and do something on COMM_WORLD; collective.

    Errors that all ranks raise at the same point are raised; any other ends the whole job.

    Raises:
        UsageError: there is no MPI library, or it is not the launcher's.
        AgreedError: some rank has not understood its command line, or ``work`` has raised it.
        DivergedError: ``work`` has raised it.
    """
    comm = world.start_mpi()
    meet(Tally(comm))  # some rank may not have understood its command line
    try:
        return work(comm)
    except (AgreedError, DivergedError):
        raise
    except BaseException as error:  # whatever it is, the others must not wait
        ending.abort(error)


def agree_on(tally: Tally, request: object) -> None:
    """See that all ranks have the same software and were asked for the same; collective.

    Raises:
        AgreedError: they differ.
    """
    found = versions() | {"the MPI library": world.library_version()}
    agree(tally, found, "use the same environment on all nodes")
    agree(tally, {"the command line": repr(request)}, "start all ranks with the same arguments")
