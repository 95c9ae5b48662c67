"""Batch scripts for clusters: runs that checkpoint before their time is over and come again.

``script(batch, scheduler)`` makes the text for Slurm, PBS or Flux; several runs become an array.
"""

from sundsbo_mpi.launching.batch import AGENTS, Batch, Resources, Run, plain
from sundsbo_mpi.launching.starting import BY_MPIRUN, launcher, program, usual_mpi
from sundsbo_mpi.launching.writing import SCHEDULERS, Scheduler, script, write

__all__ = [
    "AGENTS",
    "BY_MPIRUN",
    "SCHEDULERS",
    "Batch",
    "Resources",
    "Run",
    "Scheduler",
    "launcher",
    "plain",
    "program",
    "script",
    "usual_mpi",
    "write",
]
