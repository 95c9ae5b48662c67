"""``sundsbo-mpi repair``: a sound run file from what is whole in a damaged one."""

from __future__ import annotations

from pathlib import Path

import click

from sundsbo_mpi.cli.flags import overwrite_option


@click.command()
@click.argument("run", metavar="RUN.h5", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE.h5",
    type=click.Path(path_type=Path),
    help="Sound run file; by default RUN-repaired.h5.",
)
@overwrite_option(help="Replace the output, or RUN.h5 itself.")
def command(run: Path, output: Path | None, overwrite: bool) -> None:
    """Keep what is whole in a run file that is damaged, or whose run was killed.

    \b
    sundsbo-mpi repair run.h5 -o sound.h5

    The file itself stays as it is, unless it is the output as well and --overwrite is given.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.runfile import repair

    output = output or run.with_name(f"{run.stem}-repaired{run.suffix}")
    kept = repair(run, output, overwrite)
    if kept is None:
        click.echo(f"'{run}' is sound and its run has ended: nothing was written.")
    else:
        click.echo(f"{kept}: written to '{output}'.")
