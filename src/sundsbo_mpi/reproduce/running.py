"""Starting the runs that are missing, after writing the topologies that they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sundsbo_mpi.campaign.running import command, run_all
from sundsbo_mpi.launching import program
from sundsbo_mpi.reproduce.plan import Job
from sundsbo_mpi.reproduce.topologies import topology_command, write_topology

if TYPE_CHECKING:
    from rich.console import Console


def commands(todo: Sequence[Job], launcher: str) -> list[list[str]]:
    """Return all commands of the runs, after those that write their topologies."""
    files = {job.topology_file: job for job in todo}
    writing = [
        [*program(), *topology_command(file, job.agents, job.topology)]
        for file, job in files.items()
        if not file.exists()
    ]
    return writing + [command(job, launcher) for job in todo]


def prepare(todo: Sequence[Job]) -> None:
    """Make the directories and topology files of the runs.

    Raises:
        OSError, UsageError: they cannot be made.
    """
    for job in todo:
        job.path.parent.mkdir(parents=True, exist_ok=True)
        write_topology(job.topology_file, job.agents, job.topology)


def run_missing(todo: Sequence[Job], launcher: str, console: Console) -> None:
    """Start the runs one after the other, as ``run_all`` does.

    Raises:
        OSError, UsageError: their files cannot be made, or no run can be started.
    """
    prepare(todo)
    run_all(todo, launcher, console)
