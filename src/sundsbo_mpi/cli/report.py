"""``sundsbo-mpi report``: one run as a page for the browser."""

from __future__ import annotations

from pathlib import Path

import click

from sundsbo_mpi.cli.flags import overwrite_option
from sundsbo_mpi.errors import UsageError

SUFFIXES = (".html", ".htm")


@click.command()
@click.argument("run", metavar="RUN.h5", type=click.Path())
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    required=True,
    type=click.Path(path_type=Path),
    help="Where to write the page.",
)
@overwrite_option(help="Replace the page if it is there already.")
def command(run: str, output: Path, overwrite: bool) -> None:
    """Write one run as a page: what ran, network, data, curves, cost, how to repeat it.

    \b
    sundsbo-mpi report run.h5 -o report.html

    The page is a single file that loads nothing, for screens of any size, light or dark, and paper.
    Needs matplotlib (the extra 'plot').
    """  # noqa: D301  (click takes the character \b, not a backslash)
    if output.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"cannot write '{output}': its suffix is '{output.suffix}', expected .html; change the "
            "name."
        )
    if output.exists() and not overwrite:
        raise UsageError(
            f"'{output}' exists already: pass --overwrite to replace it, or choose another name."
        )
    from sundsbo_mpi.report.page import write
    from sundsbo_mpi.runfile import read_run

    write(read_run(run), output, overwrite=overwrite)
    click.echo(f"wrote {output}")
