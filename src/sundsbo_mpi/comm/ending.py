"""How one rank ends the whole job, and how it marks the lines that it alone says."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import socket
import sys
import time
import traceback
from typing import Any, NoReturn

from sundsbo_mpi.comm.launcher import find_launcher
from sundsbo_mpi.comm.world import start_mpi
from sundsbo_mpi.errors import UsageError

INTERRUPTED_STATUS = 130
CLOSING_SECONDS = 2
HEARING_SECONDS = 0.2
"""What MPICH's mpirun is given to read last words: without, it lost them in 2 of 300 aborts."""
ABORT_SECONDS = 10
"""How long MPI may take to end the job before the process simply exits."""


def tag() -> str:
    """Return the mark of this rank's own lines, such as "[rank 2, node7]"; local."""
    return f"[rank {_rank()}, {socket.gethostname()}]"


def abort(exc: BaseException) -> NoReturn:
    """End the whole job with exit status 1 after printing the traceback, tagged with the rank.

    An interrupt from the keyboard ends it with status 130 and without traceback.
    Works on any single rank, at any time, whatever the others do; also before MPI is initialised.
    """
    # A signal to stop may come in the middle of this, and MPI_Abort may find its daemon gone.
    faulthandler.dump_traceback_later(ABORT_SECONDS, exit=True, file=2)
    lines = "".join(traceback.format_exception(exc)).splitlines()
    status = 1
    if isinstance(exc, KeyboardInterrupt):
        lines, status = ["interrupted"], INTERRUPTED_STATUS
        if _rank() != 0:  # rank 0 has been interrupted too, and has a file to close
            time.sleep(CLOSING_SECONDS)
    with contextlib.suppress(OSError, ValueError):  # whoever read our output may be gone
        sys.stderr.write("".join(f"{tag()} {line}\n" for line in lines))
        sys.stderr.flush()
        sys.stdout.flush()
    if not _is_alone(_mpi()):
        time.sleep(HEARING_SECONDS)
        with contextlib.suppress(UsageError):
            # MPICH's mpirun lets the others wait in MPI_Init for a rank that left before it.
            start_mpi().Abort(status)
    os._exit(status)


def _is_alone(mpi: Any) -> bool:
    """Whether there are no others to end."""
    if not _is_live(mpi):
        return (mpi is not None and mpi.Is_finalized()) or find_launcher().size == 1
    try:
        lost = mpi.COMM_WORLD.Get_failed().size
    except (NotImplementedError, mpi.Exception):
        return False
    # Where all others were lost, Open MPI's launcher takes MPI_Abort for an exit with status 0.
    return bool(0 < lost == mpi.COMM_WORLD.size - 1)


def _rank() -> int:
    mpi = _mpi()
    return int(mpi.COMM_WORLD.rank) if _is_live(mpi) else find_launcher().rank


def _mpi() -> Any:
    """Return mpi4py.MPI if it was imported; whoever is in trouble should not begin with that."""
    return sys.modules.get("mpi4py.MPI")


def _is_live(mpi: Any) -> bool:
    return mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized()
