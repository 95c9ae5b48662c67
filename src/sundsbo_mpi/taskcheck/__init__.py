"""Is a task what ``tasks.base.Task`` says?  Tried in one process, without MPI, before it is run."""

from sundsbo_mpi.taskcheck.checking import check_task
from sundsbo_mpi.taskcheck.findings import Finding, Verdict

__all__ = ["Finding", "Verdict", "check_task"]
