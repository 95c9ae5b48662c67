"""``sundsbo-mpi export``: runs for those who have their own tools."""

from __future__ import annotations

from pathlib import Path

import click

from sundsbo_mpi.cli.flags import overwrite_option, runs_argument
from sundsbo_mpi.errors import UsageError


@click.command()
@runs_argument
@click.option(
    "--csv", metavar="DIR", type=click.Path(path_type=Path), help="Write tables as CSV files."
)
@click.option(
    "--parquet", metavar="DIR", type=click.Path(path_type=Path), help="Write them as Parquet files."
)
@click.option(
    "--tensorboard",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write scalars over the iterations for 'tensorboard --logdir DIR'.",
)
@overwrite_option(help="Replace what an earlier export wrote.")
def command(runs: tuple[str, ...], overwrite: bool, **folders: Path | None) -> None:
    """Write runs as CSV, as Parquet or for TensorBoard, each run to its own folder below DIR.

    \b
    sundsbo-mpi export run.h5 --csv tables
    sundsbo-mpi export *.h5 --parquet tables --tensorboard logs

    The tables are evaluations, agents, agent_costs, edge_bytes, weights and events; run.json has
    the settings.  Parquet and TensorBoard need the extra 'export'.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.exporting import export
    from sundsbo_mpi.runfile import read_run

    wanted = {kind: folder for kind, folder in folders.items() if folder is not None}
    if not wanted:
        raise UsageError(
            "nothing to write: say where, with --csv DIR, --parquet DIR or --tensorboard DIR."
        )
    read = [read_run(run) for run in runs]
    export(read, wanted, overwrite=overwrite)
    for folder in dict.fromkeys(wanted.values()):
        click.echo(f"wrote {folder}")
