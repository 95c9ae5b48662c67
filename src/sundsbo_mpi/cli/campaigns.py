"""The flags of commands that start many runs: how they start, and whether now or in Slurm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.cli.flags import flags

if TYPE_CHECKING:
    from sundsbo_mpi.campaign.performing import Manner

campaign_options = flags(
    click.option(
        "--launcher",
        metavar="'mpirun -n {n}'",
        help="How n ranks are started; with --submit by srun, as the MPI here asks, unless given.",
    ),
    click.option("--collect", is_flag=True, help="Start nothing: take the runs that are there."),
    click.option(
        "--submit",
        is_flag=True,
        help="Give the missing runs to Slurm as a job array; each comes again until it is done.",
    ),
    click.option("--dry-run", is_flag=True, help="Print the commands, or the array's script."),
)


def manner_of(options: dict[str, Any]) -> Manner:
    """Take what these flags say out of a command's options."""
    from sundsbo_mpi.campaign.performing import Manner

    return Manner(**{name: options.pop(name) for name in Manner.__dataclass_fields__})
