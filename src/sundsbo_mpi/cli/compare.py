"""``sundsbo-mpi compare``: runs from one or several clusters beside one another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType


@click.command()
@click.argument("files", metavar="FILE.h5...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--metric",
    metavar="NAME",
    help="What to reach, e.g. test_accuracy; by default accuracy, else error, else loss.",
)
@click.option(
    "--target",
    metavar="VALUE",
    type=float,
    help="The value to reach; by default the worst of the runs' last values.",
)
@click.option(
    "--better",
    type=click.Choice(["higher", "lower"]),
    help="Which way the metric is better, where its name does not tell.",
)
@click.option(
    "--csv",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a line per run, or of benches one for each series and size, pair, model and check.",
)
@click.option(
    "--png",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Draw the metric, the time split and the scaling of runs, or of benches seconds by size "
    "(.png, .pdf or .svg).",
)
def command(files: tuple[str, ...], csv: Path | None, png: Path | None, **wish: Any) -> None:
    """Put runs, or benches, beside one another: time, bytes, scaling, what it takes to a target.

    \b
    sundsbo-mpi compare ours/*.h5 theirs/*.h5 --target 80 --png compared.png

    Runs that differ in their seed alone stand together, as mean and standard deviation.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.compare.reading import are_benches
    from sundsbo_mpi.csvfile import check_csv
    from sundsbo_mpi.pictures.figures import check_picture

    if csv is not None:
        check_csv(csv)
    if png is not None:
        check_picture(png)
    if are_benches(files):
        if any(value is not None for value in wish.values()):
            raise UsageError(
                "benches have no metric: leave out --metric, --target and --better, or give runs."
            )
        _benches(files, csv, png)
    else:
        _runs(files, wish, csv, png)
    for written in (csv, png):
        if written is not None:
            click.echo(f"wrote {written}")


def _runs(
    files: Sequence[str],
    wish: Mapping[str, Any],
    csv: Path | None,
    png: Path | None,
) -> None:
    from sundsbo_mpi.compare.fairness import remarks
    from sundsbo_mpi.compare.groups import group
    from sundsbo_mpi.compare.lines import lines
    from sundsbo_mpi.compare.picture import draw
    from sundsbo_mpi.compare.reading import read_runs
    from sundsbo_mpi.compare.tables import render
    from sundsbo_mpi.compare.targets import Wish, choose_aim
    from sundsbo_mpi.csvfile import write_csv

    runs, noticed = read_runs(files)
    groups = group(runs)
    aim = choose_aim(runs, Wish(**wish))
    _show(render(groups, aim, [*noticed, *remarks(groups, aim)]))
    if csv is not None:
        write_csv(csv, lines(groups, aim))
    if png is not None:
        draw(groups, aim, png)


def _benches(files: Sequence[str], csv: Path | None, png: Path | None) -> None:
    from sundsbo_mpi.compare.bench_facts import remarks
    from sundsbo_mpi.compare.bench_lines import lines
    from sundsbo_mpi.compare.bench_picture import draw
    from sundsbo_mpi.compare.bench_tables import render
    from sundsbo_mpi.compare.reading import read_benches
    from sundsbo_mpi.csvfile import write_csv

    benches, noticed = read_benches(files)
    _show(render(benches, [*noticed, *remarks(benches)]))
    if csv is not None:
        write_csv(csv, lines(benches))
    if png is not None:
        draw(benches, png)


def _show(tables: RenderableType) -> None:
    from sundsbo_mpi.texttable import console

    console().print(tables)
