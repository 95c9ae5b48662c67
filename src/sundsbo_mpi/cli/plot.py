"""``sundsbo-mpi plot``: accuracy, or another metric, of one or more runs as a picture."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("runs", metavar="RUN.h5...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help=".png, .pdf or .svg",
)
@click.option(
    "--metric",
    metavar="NAME",
    help="What to draw, e.g. test_loss or consensus/y; by default accuracy, else error, else loss.",
)
def command(runs: tuple[str, ...], output: Path, metric: str | None) -> None:
    """Draw a metric of one or more runs against iterations, seconds and bytes."""
    from sundsbo_mpi.figures import draw_runs
    from sundsbo_mpi.runfile import read_run

    draw_runs([read_run(run) for run in runs], metric, output)
    click.echo(f"wrote {output}")
