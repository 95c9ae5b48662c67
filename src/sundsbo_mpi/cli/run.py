"""``sundsbo-mpi run``: one agent of a run; start one rank for each agent of the topology."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.cli.beginning import begin, require_filled
from sundsbo_mpi.cli.computing import checkpoint_options, given, machine_options
from sundsbo_mpi.cli.flags import (
    data_dir_option,
    file_option,
    iterations_option,
    overwrite_option,
    preset_option,
    print_config_option,
    set_option,
    task_option,
    topology_option,
)
from sundsbo_mpi.cli.reading import reading_options
from sundsbo_mpi.topology import Reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sundsbo_mpi.config.resolving import Request


@click.command()
@topology_option(help="Weight matrix or graph; its size is the number of ranks.")
@reading_options
@task_option(help="Problem to solve.")
@click.option("--dataset", metavar="NAME", help="Data set of the task.")
@data_dir_option(help="Where the data set's files are.")
@click.option("--algorithm", metavar="NAME", help="Method; 'sundsbo-mpi list' names them.")
@click.option("--estimator", metavar="NAME", help="minibatch, momentum or storm.")
@iterations_option(help="Number of iterations.")
@click.option("--seed", type=int, metavar="S", help="Of everything random.")
@click.option("--eval-every", type=int, metavar="M", help="Iterations between evaluations.")
@click.option("--dtype", metavar="float32|float64", help="Of all variables and messages.")
@click.option(
    "--stationarity", is_flag=True, help="Measure the penalised problem's gradient (slow)."
)
@click.option("--save-final", is_flag=True, help="Keep every agent's last iterate in the run file.")
@machine_options
@preset_option(help="Settings in the package, such as paper/toy.")
@click.option(
    "--config",
    metavar="FILE.toml",
    type=click.Path(),
    help="Settings in tables run, topology, task, algorithm, output.",
)
@click.option(
    "--like",
    metavar="RUN.h5",
    type=click.Path(),
    help="The settings of an earlier run, below all others.",
)
@set_option(help="Any setting; may be repeated.")
@print_config_option(
    help="Start nothing: print all settings and where each is from, as a file for --config."
)
@file_option(help="Run file; by default a new name.")
@checkpoint_options
@overwrite_option(help="Replace the run file, or trace, if it exists.")
def command(reading: Reading, sets: tuple[str, ...], print_config: bool, **flags: Any) -> int:
    """Run a decentralised method; each MPI rank is one agent.

    \b
    mpirun -n 10 sundsbo-mpi --topology ring.npz
    mpirun -n 5 sundsbo-mpi --preset paper/toy --topology ring5.npz --algorithm sun-dsbo-ed
    mpirun -n 10 sundsbo-mpi --topology ring.npz --set 'algorithm.step_y={scale=0.1, power=0.5}'

    \b
    sundsbo-mpi --preset paper/toy --topology ring5.npz --print-config > run.toml
    mpirun -n 5 sundsbo-mpi --config run.toml
    mpirun -n 10 sundsbo-mpi --like run.h5 --seed 1

    Settings given later win: defaults, earlier run, preset, config, flags, --set.  The files that
    an earlier run wrote stay as they are; what of its options another task or method does not have
    is left out.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    return begin(_request(reading, sets, flags), print_config=print_config)


def request_of(words: Sequence[str]) -> Request:
    """Return what these arguments of the command ask for.

    Raises:
        click.UsageError: one of them is unknown, or has no value where it needs one.
    """
    params = command.make_context("sundsbo-mpi run", list(words)).params
    if params.pop("print_config"):
        raise click.UsageError("--print-config starts no run: give it to 'sundsbo-mpi run' itself.")
    reading = Reading(*(params.pop(name) for name in ("form", "weights", "undirected")))
    return _request(reading, params.pop("sets"), params)


def _request(reading: Reading, sets: tuple[str, ...], flags: dict[str, Any]) -> Request:
    from sundsbo_mpi.config.resolving import Request
    from sundsbo_mpi.config.settings import flag_settings, merge

    require_filled(flags)
    preset, file, like = (flags.pop(name) for name in ("preset", "config", "like"))
    layer = merge({"topology": given(dataclasses.asdict(reading))}, flag_settings(given(flags)))
    return Request(flags=layer, sets=sets, preset=preset, file=file, like=like)
