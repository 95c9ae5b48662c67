"""Doing the runs of a stage: here one after the other, as a Slurm array, or not at all."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sundsbo_mpi.campaign import running, slurm
from sundsbo_mpi.campaign.running import State
from sundsbo_mpi.launching import program
from sundsbo_mpi.sweep.ranking import require_metric

if TYPE_CHECKING:
    from rich.console import Console

    from sundsbo_mpi.campaign.job import Job
    from sundsbo_mpi.sweep.planning import Trial

DONE = (State.FINISHED, State.FAILED)
"""What is not started again: steps that are too large fail every time."""


@dataclass(frozen=True)
class Manner:
    """What is done with the runs."""

    collect: bool
    """Start nothing."""
    submit: bool
    """Give them to Slurm."""
    after: int
    """Stages whose runs are taken as they are."""
    dry_run: bool
    """Print what would be started."""


@dataclass(frozen=True)
class Performer:
    """Does the runs of a sweep whose files are below ``directory``."""

    directory: Path
    metric: str
    launcher: str
    console: Console
    manner: Manner

    def perform(self, stage: int, trials: Sequence[Trial]) -> bool:
        """Do what is missing of a stage; say whether its results are all that are to come.

        Raises:
            OSError, UsageError: a run cannot be started, or has not measured the metric.
        """
        # Seed after seed, so that all settings get their first run early.
        planned = [trial.jobs for trial in trials if trial.jobs]
        jobs = [job for of_seed in zip(*planned, strict=True) for job in of_seed]
        if jobs:
            running.command(jobs[0], self.launcher)  # a bad launcher is refused before all else
        waits = self.manner.collect or stage < self.manner.after
        todo = [] if waits else running.missing(jobs, DONE)
        if todo and self.manner.submit:
            self._submit(stage, todo)
            return False
        if todo and self.manner.dry_run:
            for job in todo:
                click.echo(shlex.join(running.command(job, self.launcher)))
            return False
        if todo:
            self._prepare(todo)
            self.console.print(f"stage {stage + 1}: {len(todo)} of {len(jobs)} runs to do")
            running.run_all(todo, self.launcher, self.console, self._look)
        for job in jobs:
            _tidy(job)
        return True

    def _look(self, job: Job) -> None:
        if run := running.finished_run(job):
            require_metric(run, self.metric)
        _tidy(job)

    def _prepare(self, todo: Sequence[Job]) -> None:
        for job in todo:
            job.path.parent.mkdir(parents=True, exist_ok=True)
            if job.checkpoint is not None:
                job.checkpoint.parent.mkdir(parents=True, exist_ok=True)

    def _submit(self, stage: int, todo: Sequence[Job]) -> None:
        folder = self.directory / "slurm"
        text = slurm.array_script(todo, self.launcher, folder, "sundsbo-sweep")
        if self.manner.dry_run:
            click.echo(text, nl=False)
            return
        self._prepare(todo)
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / f"stage-{stage + 1}.sh"
        script.write_text(text, encoding="utf-8")
        # Each time a later stage is the first whose runs are started, so this comes to an end.
        again = [*program(), *sys.argv[1:], "--after", str(stage + 1)]
        array, following = slurm.submit(script, again)
        click.echo(
            f"submitted {len(todo)} runs of stage {stage + 1} as job {array}; job {following} goes "
            "on after them."
        )


def _tidy(job: Job) -> None:
    """Remove what a finished run does not need any more."""
    log, checkpoint = running.log_path(job), job.checkpoint
    kept = log.exists() or (checkpoint is not None and checkpoint.exists())
    if kept and running.state(job) is State.FINISHED:
        log.unlink(missing_ok=True)
        if checkpoint is not None:
            shutil.rmtree(checkpoint, ignore_errors=True)
