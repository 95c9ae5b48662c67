"""The HDF5 file of a run: what it contains, how it is written so that a kill cannot spoil it."""

from sundsbo_mpi.runfile.events import TRANSPORT, Event
from sundsbo_mpi.runfile.naming import OutputExistsError, default_path
from sundsbo_mpi.runfile.opening import DamagedError
from sundsbo_mpi.runfile.reader import RunData, read_final, read_run
from sundsbo_mpi.runfile.repairing import read_damaged, repair
from sundsbo_mpi.runfile.resuming import Continuation
from sundsbo_mpi.runfile.schema import Row, RunPlan
from sundsbo_mpi.runfile.writer import RunFile

__all__ = [
    "TRANSPORT",
    "Continuation",
    "DamagedError",
    "Event",
    "OutputExistsError",
    "Row",
    "RunData",
    "RunFile",
    "RunPlan",
    "default_path",
    "read_damaged",
    "read_final",
    "read_run",
    "repair",
]
