"""``sundsbo-mpi sweep``: many settings tried beside one another and ranked on validation data."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.cli.campaigns import campaign_options, manner_of
from sundsbo_mpi.cli.flags import folder_option, set_option
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sundsbo_mpi.campaign.job import Job
    from sundsbo_mpi.campaign.performing import Performer
    from sundsbo_mpi.sweep.reading import Sweep

HOW = """The file is a configuration with one table more:

\b
[sweep]
metric = "validation_accuracy"  # never a test metric
seeds = 3
finer = 1                       # then a finer grid around the best
refine = ["algorithm.step_x"]   # of this setting alone; by default of all
[sweep.over]
algorithm.step_x = [30.0, 100.0, 300.0]
algorithm.gamma = {low = 1.0, high = 100.0, points = 3}
[topology]
file = "ring.npz"

With search = "random" and samples = 20, so many are drawn, from random_seed = 0 on.  A metric whose
name does not say which way is better needs goal = "max" or "min".  preset and config name what lies
below the file's own tables.  Finished runs are used again and interrupted ones go on from their
checkpoints, so the same command goes on where an earlier one stopped; a run that failed is not
tried again unless its file is removed.  The table comes as Markdown and CSV, and the best
setting as best.toml for 'sundsbo-mpi --config'.
"""


@click.command(epilog=HOW)
@click.argument("file", metavar="SWEEP.toml", type=click.Path(path_type=Path))
@set_option(help="Any setting of all runs.")
@folder_option(help="Of run files and tables; by default the file's name without .toml.")
@campaign_options
@click.option(
    "--after",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    hidden=True,  # for the job that goes on after a stage's array
    help="Take the first N stages as they are.",
)
def command(
    file: Path, sets: tuple[str, ...], out: Path | None, after: int, **options: Any
) -> None:
    """Try settings on a grid or at random, and rank them by a validation metric.

    \b
    sundsbo-mpi sweep steps.toml
    sundsbo-mpi sweep steps.toml --set algorithm.name=sun-dsbo-extra --out extra
    sundsbo-mpi sweep steps.toml --submit
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.campaign.performing import Performer
    from sundsbo_mpi.campaign.running import State
    from sundsbo_mpi.campaign.telling import telling
    from sundsbo_mpi.sweep.planning import Planner
    from sundsbo_mpi.sweep.reading import read_sweep
    from sundsbo_mpi.sweep.report import report
    from sundsbo_mpi.sweep.stages import search
    from sundsbo_mpi.texttable import console as new_console

    sweep = read_sweep(file, sets)
    directory = (_folder(file) if out is None else out).absolute()
    console = new_console()
    manner = manner_of(options)
    # Steps that are too large fail every time.
    done = (State.FINISHED, State.FAILED)
    performer = Performer("sundsbo-sweep", directory, manner, console, done, _looking(sweep))
    with telling(directory, console):
        results = search(Planner(sweep, directory), _performing(performer, after))
        if results is not None and not manner.dry_run:
            report(results, sweep, directory, shlex.join(_typed()), console)


def _performing(performer: Performer, after: int) -> Callable[[int, Sequence[Job]], bool]:
    """Return what does the runs of a stage; those of the first stages are taken as they are."""
    taken = replace(performer, manner=replace(performer.manner, collect=True))

    def perform(stage: int, jobs: Sequence[Job]) -> bool:
        # Each time a later stage is the first whose runs are started, so this comes to an end.
        again = [*_typed(), "--after", str(stage + 1)]
        return (taken if stage < after else performer).perform(f"stage {stage + 1}", jobs, again)

    return perform


def _typed() -> list[str]:
    """Return the words of the command but for those that a job of its own has added."""
    words = sys.argv[1:]
    return words[: words.index("--after")] if "--after" in words else words


def _looking(sweep: Sweep) -> Callable[[Job], None]:
    """Return what ends the sweep at its first run if that does not measure the metric."""
    from sundsbo_mpi.campaign.running import finished_run
    from sundsbo_mpi.sweep.ranking import require_metric

    def look(job: Job) -> None:
        if run := finished_run(job):
            require_metric(run, sweep.options.metric)

    return look


def _folder(file: Path) -> Path:
    """Return where the files go unless the user says so."""
    if file.suffix != ".toml":
        raise UsageError(f"'{file}' does not end in .toml: say where the files go with --out DIR.")
    return Path(file.stem)
