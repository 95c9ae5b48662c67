"""``sundsbo-mpi reproduce``: the paper's tables and figures, made again and compared."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.cli.campaigns import campaign_options, manner_of
from sundsbo_mpi.cli.flags import data_dir_option, folder_option, preset_option, set_option
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from sundsbo_mpi.campaign.performing import Performer
    from sundsbo_mpi.reproduce.paper import Experiment, Label
    from sundsbo_mpi.reproduce.plan import Job, Wish
    from sundsbo_mpi.reproduce.tuning import Trial


@dataclass(frozen=True)
class Steps:
    """Which steps the runs have, if not the paper's."""

    tuned: bool
    """Those chosen on validation data."""
    tune: bool
    """Those of the grid, to choose from."""


@click.command()
@click.argument("label", metavar="LABEL", required=False)
@click.option("--list", "listing", is_flag=True, help="List all labels with what they cost.")
@click.option("--seeds", type=click.IntRange(1), metavar="N", help="Runs per cell; the paper's 10.")
@click.option("--only", multiple=True, metavar="CONDITION", help="Such as H=0.1; may be repeated.")
@click.option("--methods", metavar="NAME,...", help="Only these methods, separated by commas.")
@click.option("--iterations", type=click.IntRange(1), metavar="K", help="In place of the paper's.")
@set_option(help="Any setting of all runs.")
@preset_option(help="In place of the table's own preset.")
@data_dir_option(help="Where the data sets' files are.")
@folder_option(
    default="reproduction",
    show_default=True,
    help="Of run files, topologies and comparisons.",
)
@click.option("--tuned", is_flag=True, help="With steps chosen on validation data.")
@click.option("--tune", is_flag=True, help="Choose these steps from the table's grid.")
@campaign_options
def command(label: str | None, listing: bool, out: Path, **options: Any) -> None:
    """Make a table or figure of the paper again and put it beside the paper's.

    \b
    sundsbo-mpi reproduce --list
    sundsbo-mpi reproduce tab:dcd --seeds 3 --only H=0.5 --data-dir data
    sundsbo-mpi reproduce tab:dcd --set 'task.dataset="digits"' --iterations 100 --seeds 2

    Only missing runs are started, one at a time; the same command again goes on where an earlier
    one stopped.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.campaign.performing import Performer
    from sundsbo_mpi.campaign.telling import telling
    from sundsbo_mpi.reproduce import paper
    from sundsbo_mpi.reproduce.plan import Wish
    from sundsbo_mpi.texttable import console as new_console

    console = new_console()
    if listing or label is None:
        _refuse("--list", options)
        _list(console)
        return
    found = paper.label(label)
    with telling(out, console):
        if not found.experiments:
            _refuse(found.name, options)
            _show(found, out, console)
            return
        out = out.absolute()
        performer = Performer("sundsbo-reproduce", out, manner_of(options), console)
        steps = Steps(tuned=options.pop("tuned"), tune=options.pop("tune"))
        methods = _methods(options.pop("methods"))
        _reproduce(found, Wish(out, methods=methods, **options), steps, performer)


def _refuse(what: str, options: Mapping[str, Any]) -> None:
    """Refuse flags about runs where there are none."""
    for name, value in options.items():
        if value not in (None, False, ()):
            flag = "--set" if name == "sets" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{what} starts no runs, which {flag} is about: leave {flag} out.")


def _methods(text: str | None) -> tuple[str, ...]:
    names = tuple(filter(None, map(str.strip, (text or "").split(","))))
    if text is not None and not names:
        raise UsageError(f"--methods '{text}' names no method: name some, or leave it out for all.")
    return names


def _list(console: Console) -> None:
    from sundsbo_mpi.reproduce.catalogue import catalogue

    console.print(catalogue())


def _show(label: Label, out: Path, console: Console) -> None:
    """Say, or draw, what needs no run."""
    from sundsbo_mpi.reproduce.report import folder_of

    console.print(f"{label.name} ({label.kind}): {label.caption}", markup=False)
    for name, topology in label.drawings.items():
        from sundsbo_mpi.pictures.topology import draw_weights
        from sundsbo_mpi.reproduce.topologies import build

        picture = folder_of(label, out, tuned=False) / f"{name}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        draw_weights(build(10, topology), str(picture))
        console.print(f"wrote {picture}", markup=False)


def _reproduce(label: Label, wish: Wish, which: Steps, performer: Performer) -> None:
    from sundsbo_mpi.reproduce import paper
    from sundsbo_mpi.reproduce.plan import check, jobs
    from sundsbo_mpi.reproduce.report import folder_of, report

    experiments = [paper.experiment(name) for name in label.experiments]
    check(experiments, wish)
    if which.tune:
        _tune(label, experiments, wish, performer)
        return
    planned = {}
    for experiment in experiments:
        planned[experiment.name] = jobs(experiment, _steps(experiment, wish, which.tuned))
    if _perform(label.name, [job for of in planned.values() for job in of], performer):
        folder = folder_of(label, wish.directory, tuned=which.tuned)
        report(label, planned, performer.console, folder, _remark(wish, tuned=which.tuned))


def _remark(wish: Wish, *, tuned: bool) -> str:
    """Say what was asked for that changes the runs."""
    wanted: dict[str, object] = {
        "only": ", ".join(wish.only),
        "methods": ", ".join(wish.methods),
        "preset": wish.preset,
        "iterations": wish.iterations,
        "seeds": wish.seeds,
        "tuned": tuned,
    }
    asked = [f"{name} {value}" for name, value in wanted.items() if value] + [*wish.sets]
    return f"Other than the paper's: {', '.join(f'`{text}`' for text in asked)}." if asked else ""


def _steps(experiment: Experiment, wish: Wish, tuned: bool) -> Wish:
    from sundsbo_mpi.reproduce.tuning import tuned_steps

    if not tuned:
        return wish
    methods = [m for m in experiment.methods if not wish.methods or m in wish.methods]
    return replace(wish, steps=tuned_steps(experiment, methods, wish.directory))


def _perform(part: str, planned: Sequence[Job], performer: Performer) -> bool:
    """Start or submit what is missing; say whether there is something to compare now."""
    if not planned:
        raise UsageError("no method of --methods has the condition of --only: name others.")
    again = [word for word in sys.argv[1:] if word != "--submit"]
    done = performer.perform(part, planned, [*again, "--collect"])
    return done and not performer.manner.dry_run


def _tune(
    label: Label, experiments: Sequence[Experiment], wish: Wish, performer: Performer
) -> None:
    from sundsbo_mpi.reproduce import tuning

    found = {experiment.name: tuning.trials(experiment, wish) for experiment in experiments}
    planned = [job for trials in found.values() for trial in trials for job in trial.jobs]
    if _perform(f"steps of {label.name}", planned, performer):
        for experiment in experiments:
            _choose(experiment, found[experiment.name], wish, performer.console)


def _choose(experiment: Experiment, trials: Sequence[Trial], wish: Wish, console: Console) -> None:
    from sundsbo_mpi.campaign.tables import markdown, rich_table
    from sundsbo_mpi.reproduce import tuning

    results = tuning.results(trials)
    table = tuning.trials_table(results)
    console.print(rich_table(table))
    assert experiment.tuning is not None
    path = tuning.tuned_path(wish.directory, experiment.tuning.name)
    base = wish.preset or experiment.preset
    tuning.write_tuned(path, base, tuning.best(results), shlex.join(sys.argv[1:]))
    page = markdown(f"{path.stem}: choice of steps", (), [table])
    path.with_suffix(".md").write_text(page, encoding="utf-8")
    console.print(f"wrote {path}", markup=False)
