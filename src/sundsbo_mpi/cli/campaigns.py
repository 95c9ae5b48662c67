"""The flags of commands that start many runs: how they start, and whether now or in Slurm."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from sundsbo_mpi.campaign.performing import Manner

C = TypeVar("C", bound="Callable[..., Any]")

_FLAGS = (
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


def campaign_options(command: C) -> C:
    """Give a command these flags."""
    return reduce(lambda found, option: option(found), reversed(_FLAGS), command)


def manner_of(options: dict[str, Any]) -> Manner:
    """Take what these flags say out of a command's options."""
    from sundsbo_mpi.campaign.performing import Manner

    return Manner(**{name: options.pop(name) for name in Manner.__dataclass_fields__})
