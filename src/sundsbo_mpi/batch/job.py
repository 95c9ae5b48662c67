"""What a batch script starts: one run, or several as an array, and what they need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sundsbo_mpi.errors import UsageError, brief

AGENTS = "{n}"
"""Stands for the number of ranks in the words of a launcher."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
UNREADABLE = frozenset("\"\\'`$%")
"""Characters that some scheduler takes for something else in a directive."""


@dataclass(frozen=True)
class Run:
    """One run of a batch.

    Args:
        agents: Ranks.
        settings: Arguments of ``sundsbo-mpi run`` but for those below.
        output: The run file.
        checkpoint: The folder of its checkpoints.
        resuming: Arguments of ``sundsbo-mpi resume``, such as a larger number of iterations.
        log: The file of what the run prints; "" for that of its job.
    """

    agents: int
    settings: tuple[str, ...]
    output: str
    checkpoint: str
    resuming: tuple[str, ...] = ()
    log: str = ""


@dataclass(frozen=True)
class Resources:
    """What a job asks of the cluster; None leaves it to the cluster.

    Args:
        seconds: The time limit.
        nodes: How many nodes the ranks are spread over.
        cores: Cores of every agent.
        gpus: GPUs of every node; with Flux, of every agent.
        partition: Or queue.
        account: Who pays.
        constraint: Features that the nodes must have (Slurm).

    Raises:
        UsageError: a scheduler could not read one of the names.
    """

    seconds: int | None = None
    nodes: int | None = None
    cores: int | None = None
    gpus: int | None = None
    partition: str | None = None
    account: str | None = None
    constraint: str | None = None

    def __post_init__(self) -> None:
        """Refuse names that would end up as something else."""
        for name in ("partition", "account", "constraint"):
            if (value := getattr(self, name)) is not None:
                plain(f"--{name}", value)
                if " " in value:
                    raise UsageError(f"--{name} {brief(value)}: expected one name, without blanks.")

    @property
    def clock(self) -> str:
        """The time limit as HH:MM:SS."""
        minutes, seconds = divmod(self.seconds or 0, 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"


@dataclass(frozen=True)
class Batch:
    """What a script starts, and how often it comes again.

    Args:
        name: Of the job.
        runs: One, or those of an array.
        launcher: The words that start ``AGENTS`` ranks.
        program: The words that start this program.
        resources: What the job asks for.
        notice: Seconds before the end of its time when a run is told to stop.
        again: How often a job that is not done may come again.
        log: The file of what is printed, in the scheduler's own form; "" for one after the name
            and the job's number.
        setup: Lines of shell before anything is started, such as "module load openmpi".
        directory: Where the job runs; None for where it is submitted.
        anew: Whether a run begins anew whose checkpoint is refused.

    Raises:
        UsageError: a name cannot be one of a job, or the notice is longer than the time.
    """

    name: str
    runs: Sequence[Run]
    launcher: Sequence[str]
    program: Sequence[str]
    resources: Resources
    notice: int = 180
    again: int = 50
    log: str = ""
    setup: Sequence[str] = ()
    directory: Path | None = None
    anew: bool = False

    def __post_init__(self) -> None:
        """Refuse what no scheduler would take."""
        if not NAME.fullmatch(self.name):
            raise UsageError(
                f"--name {brief(self.name)}: expected letters, digits, dots, dashes and "
                "underscores, as in ring-10."
            )
        if self.directory is not None:
            plain("the working directory", str(self.directory))
        if self.resources.seconds is not None and self.notice >= self.resources.seconds:
            raise UsageError(
                f"--notice {self.notice} seconds before the end leave nothing of --time "
                f"{self.resources.clock}: take a shorter notice, or more time."
            )

    @property
    def agents(self) -> int:
        """The ranks of the largest run."""
        return max(run.agents for run in self.runs)

    @property
    def by_mpirun(self) -> bool:
        """Whether ranks are started by an MPI's own launcher inside the job."""
        return Path(self.launcher[0]).name.startswith("mpi")


def plain(what: str, text: str) -> str:
    """Return a text that every scheduler reads as it stands.

    Raises:
        UsageError: it is none.
    """
    odd = next((c for c in text if c in UNREADABLE or not c.isprintable()), None)
    if odd is not None:
        raise UsageError(
            f"{what} {brief(text)} has {odd!r}, which schedulers do not take as it stands: choose "
            "another name."
        )
    return text
