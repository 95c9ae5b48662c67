"""The HDF5 file of a run: what it contains, how it is written so that a kill cannot spoil it."""

from sundsbo_mpi.runfile.naming import OutputExistsError, default_path
from sundsbo_mpi.runfile.reader import RunData, read_final, read_run
from sundsbo_mpi.runfile.schema import Row, RunPlan
from sundsbo_mpi.runfile.writer import RunFile

__all__ = [
    "OutputExistsError",
    "Row",
    "RunData",
    "RunFile",
    "RunPlan",
    "default_path",
    "read_final",
    "read_run",
]
