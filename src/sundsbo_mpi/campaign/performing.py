"""Doing the runs of a campaign: here one after the other, as a Slurm array, or not at all."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sundsbo_mpi.batch import BY_MPIRUN, program, usual_mpi
from sundsbo_mpi.campaign import running, slurm
from sundsbo_mpi.campaign.process import alone
from sundsbo_mpi.campaign.running import State
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from sundsbo_mpi.campaign.job import Job


@dataclass(frozen=True)
class Manner:
    """What is done with the runs."""

    launcher: str | None
    """How ranks are started, such as ``mpirun -n {n}``; None for the usual way."""
    collect: bool
    """Start nothing."""
    submit: bool
    """Give them to Slurm."""
    dry_run: bool
    """Print what would be started."""

    @property
    def starts(self) -> str:
        """How ranks are started: unless told, by srun in a job of Slurm, by mpirun here."""
        usual = usual_mpi() if self.submit else BY_MPIRUN
        return running.usual_launcher(usual) if self.launcher is None else self.launcher


@dataclass(frozen=True)
class Performer:
    """Does the runs of a campaign, whose files are all below ``directory``.

    Args:
        name: Of its jobs in Slurm.
        directory: Where everything is written.
        manner: What is done with the runs.
        console: Where the progress is shown.
        done: What is not started again.
        look: Called with each run that has ended here.
    """

    name: str
    directory: Path
    manner: Manner
    console: Console
    done: Sequence[State] = (State.FINISHED,)
    look: Callable[[Job], None] = lambda _job: None

    def perform(self, part: str, planned: Sequence[Job], again: Sequence[str]) -> bool:
        """Do what is missing of some runs; say whether no results of theirs are still to come.

        Args:
            part: What these runs are called among those of the campaign.
            planned: The runs.
            again: The arguments of this program with which a job goes on after those of Slurm.

        Raises:
            OSError, UsageError: a run cannot be started, or all were refused.
        """
        if planned and all(job.refusal for job in planned):
            raise UsageError(planned[0].refusal)
        for job in planned[:1]:
            running.command(job, self.manner.starts)  # a bad launcher is refused before all else
        todo = [] if self.manner.collect else running.missing(planned, self.done)
        if todo and not self.manner.dry_run:
            slurm.require_none_queued(self._slurm)
        if todo and self.manner.submit:
            self._submit(part, todo, again)
        elif todo and self.manner.dry_run:
            self._print(todo)
        elif todo:
            _prepare(todo)
            self.console.print(f"{part}: {len(todo)} of {len(planned)} runs to do", markup=False)
            running.run_all(todo, self.manner.starts, self.console, self._ended)
        if not self.manner.dry_run:
            for job in planned:
                _tidy(job)
        return not (todo and (self.manner.submit or self.manner.dry_run))

    @property
    def _slurm(self) -> Path:
        return self.directory / "slurm"

    def _ended(self, job: Job) -> None:
        self.look(job)
        _tidy(job)

    def _print(self, todo: Sequence[Job]) -> None:
        before = {shlex.join([*program(), *words]): None for job in todo for words in job.before()}
        for line in (*before, *(shlex.join(running.command(j, self.manner.starts)) for j in todo)):
            click.echo(line)

    def _submit(self, part: str, todo: Sequence[Job], again: Sequence[str]) -> None:
        script = self._slurm / f"{re.sub('[^A-Za-z0-9-]+', '-', part)}.sbatch"
        text = slurm.array_script(todo, self.manner.starts, self.name, script)
        if self.manner.dry_run:
            click.echo(text, nl=False)
            return
        _prepare(todo)
        with alone(todo[0].path.parent):
            for job in todo:
                job.log.unlink(missing_ok=True)
                if not running.can_go_on(job):  # but the array's tasks would try to
                    shutil.rmtree(job.checkpoint, ignore_errors=True)
            array, following = slurm.submit(script, text, [*program(), *again])
        click.echo(
            f"{part}: submitted {len(todo)} runs as job {array}; job {following} goes on after them"
        )


def _prepare(todo: Sequence[Job]) -> None:
    for job in todo:
        job.prepare()


def _tidy(job: Job) -> None:
    """Remove what a finished run does not need any more."""
    kept = job.log.exists() or job.checkpoint.exists()
    if kept and running.state(job) is State.FINISHED:
        job.log.unlink(missing_ok=True)
        shutil.rmtree(job.checkpoint, ignore_errors=True)
