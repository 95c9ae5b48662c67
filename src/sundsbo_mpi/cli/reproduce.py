"""``sundsbo-mpi reproduce``: the paper's tables and figures, made again and compared."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from sundsbo_mpi.reproduce.paper import Experiment, Label
    from sundsbo_mpi.reproduce.plan import Job, Manner, Wish

WIDTH = 160


@click.command()
@click.argument("label", metavar="LABEL", required=False)
@click.option("--list", "listing", is_flag=True, help="List all labels with what they cost.")
@click.option("--seeds", type=click.IntRange(1), metavar="N", help="Runs per cell; the paper's 10.")
@click.option("--only", multiple=True, metavar="CONDITION", help="Such as H=0.1; may be repeated.")
@click.option("--methods", metavar="NAME,...", help="Only these methods, separated by commas.")
@click.option("--iterations", type=click.IntRange(1), metavar="K", help="In place of the paper's.")
@click.option(
    "--set", "sets", multiple=True, metavar="TABLE.KEY=VALUE", help="Any setting of all runs."
)
@click.option("--preset", metavar="NAME", help="In place of the table's own preset.")
@click.option(
    "--data-dir", metavar="DIR", type=click.Path(), help="Where the data sets' files are."
)
@click.option("--launcher", metavar="'mpirun -n {n}'", help="How n ranks are started.")
@click.option(
    "--out",
    metavar="DIR",
    default="reproduction",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Of run files, topologies and comparisons.",
)
@click.option("--tuned", is_flag=True, help="With steps chosen on validation data.")
@click.option("--tune", is_flag=True, help="Choose these steps from the table's grid.")
@click.option("--collect", is_flag=True, help="Start nothing: compare the runs that are there.")
@click.option("--submit", is_flag=True, help="Give the missing runs to Slurm as a job array.")
@click.option("--dry-run", is_flag=True, help="Print the commands, or the array's script.")
def command(label: str | None, listing: bool, out: Path, **options: Any) -> None:
    """Make a table or figure of the paper again and put it beside the paper's.

    \b
    sundsbo-mpi reproduce --list
    sundsbo-mpi reproduce tab:dcd --seeds 3 --only H=0.5 --data-dir data
    sundsbo-mpi reproduce tab:dcd --set 'task.dataset="digits"' --iterations 100 --seeds 2

    Only missing runs are started, one at a time; the same command again goes on where an earlier
    one stopped.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from rich.console import Console

    from sundsbo_mpi.campaign.running import default_launcher
    from sundsbo_mpi.campaign.telling import telling
    from sundsbo_mpi.reproduce import paper
    from sundsbo_mpi.reproduce.plan import Manner, Wish

    # A file has no width, and breaking lines would spoil the tables.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)
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
        launcher = options.pop("launcher")
        launcher = default_launcher() if launcher is None else launcher
        names = ("tuned", "tune", "collect", "submit", "dry_run")
        manner = Manner(launcher, **{name: options.pop(name) for name in names})
        methods = _methods(options.pop("methods"))
        _reproduce(found, Wish(out.absolute(), methods=methods, **options), manner, console)


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
        from sundsbo_mpi.reproduce.topologies import build
        from sundsbo_mpi.topology.draw import draw_weights

        picture = folder_of(label, out, tuned=False) / f"{name}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        draw_weights(build(10, topology), str(picture))
        console.print(f"wrote {picture}", markup=False)


def _reproduce(label: Label, wish: Wish, manner: Manner, console: Console) -> None:
    from sundsbo_mpi.reproduce import paper
    from sundsbo_mpi.reproduce.plan import check, jobs
    from sundsbo_mpi.reproduce.report import folder_of, report

    experiments = [paper.experiment(name) for name in label.experiments]
    check(experiments, wish)
    if manner.tune:
        for experiment in experiments:
            _tune(experiment, wish, manner, console)
        return
    planned = {}
    for experiment in experiments:
        planned[experiment.name] = jobs(experiment, _steps(experiment, wish, manner.tuned))
    todo = [job for of in planned.values() for job in of]
    if _run(todo, manner, console, wish.directory):
        folder = folder_of(label, wish.directory, tuned=manner.tuned)
        report(label, planned, console, folder, _remark(wish, manner))


def _remark(wish: Wish, manner: Manner) -> str:
    """Say what was asked for that changes the runs."""
    wanted: dict[str, object] = {
        "only": ", ".join(wish.only),
        "methods": ", ".join(wish.methods),
        "preset": wish.preset,
        "iterations": wish.iterations,
        "seeds": wish.seeds,
        "tuned": manner.tuned,
    }
    asked = [f"{name} {value}" for name, value in wanted.items() if value] + [*wish.sets]
    return f"Other than the paper's: {', '.join(f'`{text}`' for text in asked)}." if asked else ""


def _steps(experiment: Experiment, wish: Wish, tuned: bool) -> Wish:
    from sundsbo_mpi.reproduce.tuning import tuned_steps

    if not tuned:
        return wish
    methods = [m for m in experiment.methods if not wish.methods or m in wish.methods]
    return dataclasses.replace(wish, steps=tuned_steps(experiment, methods, wish.directory))


def _run(planned: Sequence[Job], manner: Manner, console: Console, out: Path) -> bool:
    """Start or submit what is missing; say whether there is something to compare now."""
    from sundsbo_mpi.campaign import running
    from sundsbo_mpi.reproduce.running import commands, run_missing

    if not planned:
        raise UsageError("no method of --methods has the condition of --only: name others.")
    if all(job.refusal for job in planned):
        raise UsageError(planned[0].refusal)
    running.command(planned[0], manner.launcher)  # a bad launcher is refused before all else
    todo = [] if manner.collect else running.missing(planned)
    if manner.submit and todo:
        _submit(todo, manner, out)
        return False
    if manner.dry_run:
        for words in commands(todo, manner.launcher):
            click.echo(shlex.join(words))
        return False
    if todo:
        run_missing(todo, manner.launcher, console)
    return True


def _submit(todo: Sequence[Job], manner: Manner, out: Path) -> None:
    from sundsbo_mpi.campaign import slurm
    from sundsbo_mpi.launching import program
    from sundsbo_mpi.reproduce.running import prepare

    folder = out / "slurm"
    text = slurm.array_script(todo, manner.launcher, folder, "sundsbo-reproduce")
    if manner.dry_run:
        click.echo(text, nl=False)
        return
    prepare(todo)
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "array.sh"
    script.write_text(text, encoding="utf-8")
    again = [word for word in sys.argv[1:] if word != "--submit"]
    array, collecting = slurm.submit(script, [*program(), *again, "--collect"])
    click.echo(f"submitted {len(todo)} runs as job {array}; job {collecting} compares them after.")


def _tune(experiment: Experiment, wish: Wish, manner: Manner, console: Console) -> None:
    from sundsbo_mpi.campaign.tables import markdown, rich_table
    from sundsbo_mpi.reproduce import tuning

    trials = tuning.trials(experiment, wish)
    if not _run([job for trial in trials for job in trial.jobs], manner, console, wish.directory):
        return
    table = tuning.trials_table(trials)
    console.print(rich_table(table))
    assert experiment.tuning is not None
    path = tuning.tuned_path(wish.directory, experiment.tuning.name)
    base = wish.preset or experiment.preset
    tuning.write_tuned(path, base, tuning.best(trials), shlex.join(sys.argv[1:]))
    page = markdown(f"{path.stem}: choice of steps", (), [table])
    path.with_suffix(".md").write_text(page, encoding="utf-8")
    console.print(f"wrote {path}", markup=False)
