"""``sundsbo-mpi resume``: go on with a run from its newest checkpoint, one rank for each agent."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.cli.beginning import begin, require_filled
from sundsbo_mpi.cli.computing import checkpoint_options, given, machine_options
from sundsbo_mpi.cli.flags import (
    file_option,
    iterations_option,
    overwrite_option,
    print_config_option,
    set_option,
    topology_option,
)
from sundsbo_mpi.cli.reading import reading_options

if TYPE_CHECKING:
    from sundsbo_mpi.topology import Reading


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path())
@iterations_option(help="Go on to so many iterations in all.")
@topology_option(help="Where the weights are now, or others to go on over.")
@reading_options
@machine_options
@file_option(help="A new run file; by default the run's own goes on.")
@overwrite_option(help="Replace the new run file, or trace, if it exists.")
@checkpoint_options
@set_option(help="A setting; may be repeated.")
@print_config_option(help="Start nothing: print the settings it would have.")
def command(
    directory: str, reading: Reading, sets: tuple[str, ...], print_config: bool, **flags: Any
) -> int:
    """Go on with a run from its newest checkpoint that is whole.

    \b
    mpirun -n 10 sundsbo-mpi --topology ring.npz --checkpoint saved --checkpoint-every 600s
    mpirun -n 10 sundsbo-mpi resume saved
    mpirun -n 10 sundsbo-mpi resume saved --iterations 2000
    mpirun -n 10 sundsbo-mpi resume saved --topology torus.npz

    The iterates are those of a run that was not interrupted, bit for bit, with the same torch and
    instruction set; the number of threads is that of the checkpoint.  Its settings hold, but for
    the flags here; a step that depends on the number of iterations follows the new number.  Over
    other weights the techniques begin anew.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.config.resolving import Request
    from sundsbo_mpi.config.settings import flag_settings, merge

    require_filled({"directory": directory, **flags})
    layer = merge({"topology": given(dataclasses.asdict(reading))}, flag_settings(given(flags)))
    request = Request(flags=layer, sets=sets, resume=directory)
    return begin(request, print_config=print_config)
