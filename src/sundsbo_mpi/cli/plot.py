"""``sundsbo-mpi plot``: accuracy, or other metrics, of one or more runs as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from sundsbo_mpi.cli.flags import runs_argument


@click.command()
@runs_argument
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
    "metrics",
    metavar="NAME|PATTERN",
    multiple=True,
    help="What to draw, a row for each, e.g. test_loss or 'consensus/*'; may be repeated; by "
    "default accuracy, else error, else loss.",
)
@click.option("--apart", is_flag=True, help="Draw every seed as a curve of its own.")
def command(runs: tuple[str, ...], output: Path, metrics: tuple[str, ...], apart: bool) -> None:
    """Draw metrics of one or more runs against iterations, seconds and bytes.

    \b
    sundsbo-mpi plot run.h5 -o run.png
    sundsbo-mpi plot gt-*.h5 extra-*.h5 -o both.pdf
    sundsbo-mpi plot run.h5 --metric '*accuracy' --metric '*loss' --metric 'consensus/*' \\
        --metric stationarity -o all.svg

    Runs that differ in their seed alone are one curve, the mean, with a band of one standard
    deviation.  A dashed line is the mean over the agents of their own models.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.compare import groups
    from sundsbo_mpi.compare.curves import draw_groups
    from sundsbo_mpi.metric_names import choose_metrics
    from sundsbo_mpi.pictures.figures import check_picture
    from sundsbo_mpi.runfile import read_run

    check_picture(output)
    read = [read_run(run) for run in runs]
    chosen = choose_metrics(read, metrics)
    draw_groups(groups.apart(read) if apart else groups.group(read), chosen, output)
    click.echo(f"wrote {output}")
