"""Batch scripts for clusters: runs that checkpoint before their time is over and come again.

``script(batch, scheduler)`` makes the text for Slurm, PBS or Flux; several runs become an array.
"""

from sundsbo_mpi.batch.job import AGENTS, Batch, Resources, Run, plain
from sundsbo_mpi.batch.starting import BY_MPIRUN, by_flux, launcher, program, usual_mpi
from sundsbo_mpi.batch.writing import SCHEDULERS, Scheduler, script, write

__all__ = [
    "AGENTS",
    "BY_MPIRUN",
    "SCHEDULERS",
    "Batch",
    "Resources",
    "Run",
    "Scheduler",
    "by_flux",
    "launcher",
    "plain",
    "program",
    "script",
    "usual_mpi",
    "write",
]
