"""Starting runs one at a time, each as an ordinary MPI job, and finding them again."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sundsbo_mpi.batch import AGENTS, program
from sundsbo_mpi.batch import launcher as launcher_of
from sundsbo_mpi.campaign.job import Job
from sundsbo_mpi.campaign.process import alone, orderly_end, start
from sundsbo_mpi.config.identity import identity
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import read_run

if TYPE_CHECKING:
    from rich.console import Console

    from sundsbo_mpi.runfile import RunData

J = TypeVar("J", bound=Job)
REFUSED = 2
"""The exit status of a run that could not start."""
SAYS = "sundsbo-mpi: "
"""How a line of a log begins that is the program's own sentence."""


class State(Enum):
    """What is found at the place of a run's file."""

    FINISHED = "finished"
    MISSING = "not run"
    UNFINISHED = "killed, or still running"
    FAILED = "failed"
    OTHER = "a run of other settings"


def usual_launcher(mpi: str) -> str:
    """Return how ranks are started, see ``batch.launcher``, as one text."""
    return " ".join(word if word == AGENTS else shlex.quote(word) for word in launcher_of(mpi))


def words_of(launcher: str) -> list[str]:
    """Return the words of a launcher that a user gives, with ``{n}`` for the number of ranks.

    Raises:
        UsageError: it does not say where that goes.
    """
    try:
        words = shlex.split(launcher)
    except ValueError as error:
        raise UsageError(f"--launcher {launcher}: {error}; close what you have opened.") from None
    if not any(AGENTS in word for word in words):
        raise UsageError(
            f"--launcher '{launcher}' has no {AGENTS}: write it where the number of ranks goes, as "
            f"in 'mpirun -n {AGENTS}'."
        )
    return words


def command(job: Job, launcher: str, *, anew: bool = False) -> list[str]:
    """Return the words that start a run, or let it go on where it has a checkpoint.

    Args:
        job: The run.
        launcher: How ranks are started, such as ``mpirun -n {n}``.
        anew: Begin also where the run could go on.

    Raises:
        UsageError: the launcher does not say where the number of ranks goes.
    """
    words = [word.replace(AGENTS, str(job.agents)) for word in words_of(launcher)]
    if not anew and can_go_on(job):
        return [*words, *program(), "resume", str(job.checkpoint)]
    return [*words, *program(), "run", *job.settings, *files_of(job)]


def files_of(job: Job) -> tuple[str, ...]:
    """Return the arguments of ``sundsbo-mpi run`` that name the files of a run."""
    return ("--output", str(job.path), "--checkpoint", str(job.checkpoint))


def state(job: Job) -> State:
    """Look whether the run is there, whole, and the one that is wanted."""
    return _look(job)[0]


def finished_run(job: Job) -> RunData | None:
    """Return the run if it is finished and the one that is wanted."""
    found, run = _look(job)
    return run if found is State.FINISHED else None


def _look(job: Job) -> tuple[State, RunData | None]:
    if not job.path.exists():
        return State.MISSING, None
    try:
        run = read_run(job.path)
    except UsageError:
        return State.UNFINISHED, None
    if not _is_wanted(run, job):
        return State.OTHER, run
    known = {"finished": State.FINISHED, "failed": State.FAILED}
    return known.get(run.status, State.UNFINISHED), run


def _is_wanted(run: RunData, job: Job) -> bool:
    try:
        same = identity(run.config) == job.wanted
    except (AttributeError, TypeError):  # a file of another program may configure anything
        return False
    return same and (run.rows > 0 or run.status != "finished")


def can_go_on(job: Job) -> bool:
    """Look whether the run was interrupted and has a checkpoint that goes on in its run file."""
    if state(job) is not State.UNFINISHED:
        return False
    from sundsbo_mpi.checkpoint.resuming import candidates

    try:
        newest = candidates(job.checkpoint)[0].manifest
    except UsageError:
        return False
    return Path(newest.run_file) == job.path.resolve()  # as it was written


def missing(planned: Sequence[J], done: Sequence[State] = (State.FINISHED,)) -> list[J]:
    """Return the runs to start: not done, not refused, and each only once."""
    wanted = {job.path: job for job in planned if not job.refusal}
    return [job for job in wanted.values() if state(job) not in done]


def run_all(
    todo: Sequence[Job],
    launcher: str,
    console: Console,
    after: Callable[[Job], None] = lambda _job: None,
) -> None:
    """Start the runs one after the other; one that fails leaves its words in a .log file.

    Ctrl-C, SIGTERM and SIGHUP end the present run, and leave the finished ones.

    Args:
        todo: The runs, whose files are all in one directory.
        launcher: How ranks are started.
        console: Where the progress is shown and trouble is told.
        after: Called after every run.

    Raises:
        UsageError: there is no such launcher, or another command is at work there.
    """
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("[progress.description]{task.description}", BarColumn(), MofNCompleteColumn())
    progress = Progress(*columns, TimeRemainingColumn(), console=console)
    with orderly_end(), alone(todo[0].path.parent), progress:
        bar = progress.add_task("runs", total=len(todo))
        for job in todo:
            progress.update(bar, description=escape(job.title))
            trouble = _run(job, launcher)
            if trouble or not console.is_terminal:  # where no bar moves
                console.print(f"{job.title}: {trouble or State.FINISHED.value}", markup=False)
            after(job)
            progress.advance(bar)


def _run(job: Job, launcher: str) -> str:
    """Start a run, and say why it has not finished, if so; else its log goes."""
    log = job.log
    goes_on = can_go_on(job)
    status = start(command(job, launcher), log)
    if goes_on and status == REFUSED:  # its checkpoint does not fit this program any more
        status = start(command(job, launcher, anew=True), log)
    if state(job) is State.FINISHED:
        log.unlink(missing_ok=True)
        return ""
    if status == 0:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"\n{SAYS}the launcher ended with status 0 but left no finished run\n")
    return why_lacking(job)


def why_lacking(job: Job) -> str:
    """Say why a cell has no finished run: in the run's own sentence, if it left one."""
    if job.refusal:
        return job.refusal
    found = state(job)
    log = job.log
    if found is State.FINISHED or not log.exists():
        return found.value
    lines = log.read_text(encoding="utf-8", errors="replace").replace("\0", "").splitlines()
    said = [line for line in lines if line.startswith(SAYS)]
    last = said[-1].removeprefix(SAYS) if said else f"no word of its own, see {log}"
    return f"{State.FAILED.value}: {last}"
