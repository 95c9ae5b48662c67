"""Starting the runs that are missing, one at a time, each as an ordinary MPI job."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.identity import identity
from sundsbo_mpi.reproduce.launching import alone, orderly_end, start
from sundsbo_mpi.reproduce.plan import Job
from sundsbo_mpi.reproduce.topologies import topology_command, write_topology
from sundsbo_mpi.runfile import read_run

if TYPE_CHECKING:
    from rich.console import Console

    from sundsbo_mpi.runfile import RunData

PLACE = "{n}"
SAYS = "sundsbo-mpi: "
"""How a line of a log begins that is the program's own sentence."""


class State(Enum):
    """What is found at the place of a run's file."""

    FINISHED = "finished"
    MISSING = "not run"
    UNFINISHED = "killed, or still running"
    FAILED = "failed"
    OTHER = "a run of other settings"


def default_launcher() -> str:
    """Name the mpirun beside the running Python, or the one on PATH."""
    beside = Path(sys.executable).with_name("mpirun")
    found = str(beside) if beside.exists() else shutil.which("mpirun") or "mpirun"
    return f"{shlex.quote(found)} -n {PLACE}"


def command(job: Job, launcher: str) -> list[str]:
    """Return the words that start a run.

    Raises:
        UsageError: the launcher does not say where the number of ranks goes.
    """
    try:
        words = shlex.split(launcher)
    except ValueError as error:
        raise UsageError(f"--launcher {launcher}: {error}; close what you have opened.") from None
    if not any(PLACE in word for word in words):
        raise UsageError(
            f"--launcher '{launcher}' has no {PLACE}: write it where the number of ranks goes, as "
            f"in 'mpirun -n {PLACE}'."
        )
    words = [word.replace(PLACE, str(job.agents)) for word in words]
    return [*words, *program(), "run", *job.arguments]


def program() -> list[str]:
    """Return the words that start this program, with the Python that runs it now.

    Without -P, files of the working directory would stand in for modules of the same name.
    """
    return [sys.executable, "-P", "-m", "sundsbo_mpi"]


def state(job: Job) -> State:
    """Look whether the run is there, whole, and the one that is wanted."""
    if not job.path.exists():
        return State.MISSING
    try:
        run = read_run(job.path)
    except UsageError:
        return State.UNFINISHED
    if not _is_wanted(run, job):
        return State.OTHER
    if run.status == "finished":
        return State.FINISHED
    return State.FAILED if run.status == "failed" else State.UNFINISHED


def _is_wanted(run: RunData, job: Job) -> bool:
    try:
        same = identity(run.config) == job.wanted
    except (AttributeError, TypeError):  # a file of another program may configure anything
        return False
    return same and (run.rows > 0 or run.status != "finished")


def missing(planned: Sequence[Job]) -> list[Job]:
    """Return the runs to start: not finished, not refused, and each only once."""
    wanted = {job.path: job for job in planned if not job.refusal}
    return [job for job in wanted.values() if state(job) is not State.FINISHED]


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
    """Start the runs one after the other; one that fails leaves its words in a .log file.

    Ctrl-C, SIGTERM and SIGHUP end the present run, and leave the finished ones.

    Raises:
        UsageError: there is no such launcher, or another reproduction is at work there.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    prepare(todo)
    columns = ("[progress.description]{task.description}", BarColumn(), MofNCompleteColumn())
    progress = Progress(*columns, TimeRemainingColumn(), console=console)
    with orderly_end(), alone(todo[0].path.parent), progress:
        bar = progress.add_task("runs", total=len(todo))
        for job in todo:
            progress.update(bar, description=f"{job.method}, {job.condition}, seed {job.seed}")
            if trouble := _run(job, launcher):
                progress.console.print(
                    f"{job.method}, {job.condition}, seed {job.seed}: {trouble}", markup=False
                )
            progress.advance(bar)


def _run(job: Job, launcher: str) -> str:
    """Start a run, and say why it has not finished, if so; else its log goes."""
    log = log_path(job)
    status = start(command(job, launcher), log)
    if state(job) is State.FINISHED:
        log.unlink(missing_ok=True)
        return ""
    if status == 0:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"\n{SAYS}the launcher ended with status 0 but left no finished run\n")
    return reason(job)


def log_path(job: Job) -> Path:
    """Return where the words of a run go."""
    return job.path.with_suffix(".log")


def reason(job: Job) -> str:
    """Say why a cell has no finished run: in the run's own sentence, if it left one."""
    if job.refusal:
        return job.refusal
    found = state(job)
    log = log_path(job)
    if found is State.FINISHED or not log.exists():
        return found.value
    lines = log.read_text(encoding="utf-8", errors="replace").replace("\0", "").splitlines()
    said = [line for line in lines if line.startswith(SAYS)]
    last = said[-1].removeprefix(SAYS) if said else f"no word of its own, see {log}"
    return f"{State.FAILED.value}: {last}"
