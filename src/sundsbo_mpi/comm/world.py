"""The MPI world: initialise it or say why not, and leave it."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.comm import openmpi
from sundsbo_mpi.comm.launcher import find_launcher, lonely, mismatch
from sundsbo_mpi.errors import UsageError, unknown

if TYPE_CHECKING:
    from mpi4py import MPI


def load_mpi() -> Any:
    """Import mpi4py.MPI without initialising MPI; must come before any other import of it.

    Raises:
        UsageError: there is no MPI library.
    """
    import mpi4py

    mpi4py.rc.initialize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            "no MPI library found (mpi4py cannot load libmpi): install one with "
            "pip install 'sundsbo-mpi[openmpi]', or load your site's (module load openmpi), or "
            "add the folder of libmpi.so to LD_LIBRARY_PATH."
        ) from error
    return MPI


def start_mpi() -> MPI.Intracomm:
    """Initialise MPI with one communicating thread at a time and return COMM_WORLD.

    Collective over all processes of the job.  ``MPI4PY_RC_THREAD_LEVEL`` overrides the thread
    level.  Unless MPI is initialised already, variables that Open MPI reads are set in this
    process's environment (``comm.openmpi``).  MPI is finalised when the interpreter exits.

    Raises:
        UsageError: there is no MPI library, or it is not the launcher's, or there is no such thread
            level as the environment asks for.
    """
    mpi = load_mpi()
    launcher = find_launcher()
    (vendor, version), library = mpi.get_vendor(), mpi.Get_library_version()
    # Before MPI_Init: MPICH without PMIx aborts there, in C, when it finds a PMIx launcher.
    if not mpi.Is_initialized():
        if complaint := mismatch(vendor, library, launcher):
            raise UsageError(complaint)
        os.environ.update(openmpi.settings(os.environ, vendor, version))
        mpi.Init_thread(_thread_level(mpi))
        atexit.register(_finalise, mpi)
    if complaint := lonely(vendor, launcher, mpi.COMM_WORLD.size):
        raise UsageError(complaint)
    world: MPI.Intracomm = mpi.COMM_WORLD
    return world


def library_version() -> str:
    """Return the first line of the MPI library's description of itself."""
    from mpi4py import MPI

    return MPI.Get_library_version().strip("\0\n ").splitlines()[0]


def _thread_level(mpi: Any) -> int:
    levels = {
        "single": mpi.THREAD_SINGLE,
        "funneled": mpi.THREAD_FUNNELED,
        "serialized": mpi.THREAD_SERIALIZED,
        "multiple": mpi.THREAD_MULTIPLE,
    }
    asked = os.environ.get("MPI4PY_RC_THREAD_LEVEL", "serialized").lower()
    if asked not in levels:
        raise unknown("thread level in MPI4PY_RC_THREAD_LEVEL", asked, levels)
    return int(levels[asked])


def _finalise(mpi: Any) -> None:
    """Finalise at exit: mpi4py leaves that to us since it did not initialise."""
    if not mpi.Is_finalized():
        mpi.Finalize()


def part_by(farewell: Callable[[], object]) -> None:
    """Do something else than MPI_Finalize when the interpreter exits; local."""
    atexit.unregister(_finalise)
    atexit.register(farewell)
