"""How a job of several ranks begins and ends: together."""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from sundsbo_mpi.comm import ending, openmpi, world
from sundsbo_mpi.comm.agreement import agree, meet
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.errors import AgreedError, DivergedError
from sundsbo_mpi.versions import versions

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")

START_SECONDS = 1800.0
"""How long a rank waits for the others to start: MPI may wait for ever for one that has died."""


def meet_all(complaint: str | None = None) -> MPI.Intracomm:
    """Start MPI and hear whether all ranks have understood their command lines; collective.

    A rank that waits for others longer than START_SECONDS prints its stack and exits with status 1.

    Args:
        complaint: What this rank has against its own.

    Raises:
        UsageError: as ``world.start_mpi``.
        AgreedError: some rank has a complaint.
    """
    faulthandler.dump_traceback_later(START_SECONDS, exit=True, file=2)
    try:
        comm = world.start_mpi()
        meet(Tally(comm), complaint)
        return comm
    finally:
        faulthandler.cancel_dump_traceback_later()


def do_together(work: Callable[[MPI.Intracomm], T]) -> T:
    """Start MPI and do something on COMM_WORLD; collective.

    Errors that all ranks raise at the same point are raised; any other ends the whole job.

    Raises:
        UsageError: as ``world.start_mpi``.
        AgreedError: some rank has not understood its command line, or ``work`` has raised it.
        DivergedError: ``work`` has raised it.
    """
    comm = meet_all()
    try:
        return work(comm)
    except (AgreedError, DivergedError):
        raise
    except BaseException as error:  # whatever it is, the others must not wait
        ending.abort(error)


def agree_on(tally: Tally, request: object) -> None:
    """See that all ranks have the same software, limits and request; collective.

    Raises:
        AgreedError: they differ.
    """
    found = versions() | {"the MPI library": world.library_version()}
    agree(tally, found, "use the same environment on all nodes")
    agree(tally, openmpi.limits(os.environ), "set it to the same value on all nodes, or on none")
    agree(tally, {"the command line": repr(request)}, "start all ranks with the same arguments")
