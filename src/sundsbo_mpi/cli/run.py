"""``sundsbo-mpi run``: one agent of a run; start one rank for each agent of the topology."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from sundsbo_mpi.cli.manner import checkpoint_options, given, machine_options
from sundsbo_mpi.cli.reading import reading_options

if TYPE_CHECKING:
    from sundsbo_mpi.topology import Reading


@click.command()
@click.option(
    "--topology", metavar="FILE", help="Weight matrix or graph; its size is the number of ranks."
)
@reading_options
@click.option("--task", metavar="NAME|FILE.py:CLASS", help="Problem to solve.")
@click.option("--dataset", metavar="NAME", help="Data set of the task.")
@click.option("--data-dir", metavar="DIR", help="Where the data set's files are.")
@click.option("--algorithm", metavar="NAME", help="Method; 'sundsbo-mpi list' names them.")
@click.option("--estimator", metavar="NAME", help="minibatch, momentum or storm.")
@click.option("--iterations", type=int, metavar="K", help="Number of iterations.")
@click.option("--seed", type=int, metavar="S", help="Of everything random.")
@click.option("--eval-every", type=int, metavar="M", help="Iterations between evaluations.")
@click.option("--dtype", metavar="float32|float64", help="Of all variables and messages.")
@click.option(
    "--stationarity", is_flag=True, help="Measure the penalised problem's gradient (slow)."
)
@click.option("--save-final", is_flag=True, help="Keep every agent's last iterate in the run file.")
@machine_options
@click.option("--preset", metavar="NAME", help="Settings in the package, such as paper/toy.")
@click.option(
    "--config",
    metavar="FILE.toml",
    help="Settings in tables run, topology, task, algorithm, output.",
)
@click.option(
    "--set", "sets", multiple=True, metavar="TABLE.KEY=VALUE", help="Any setting; may be repeated."
)
@click.option("--output", metavar="FILE.h5", help="Run file; by default a new name.")
@checkpoint_options
@click.option("--overwrite", is_flag=True, help="Replace the run file, or trace, if it exists.")
def command(
    reading: Reading,
    preset: str | None,
    config: str | None,
    sets: tuple[str, ...],
    **flags: Any,
) -> int:
    """Run a decentralised method; each MPI rank is one agent.

    \b
    mpirun -n 10 sundsbo-mpi --topology ring.npz
    mpirun -n 5 sundsbo-mpi --preset paper/toy --topology ring5.npz --algorithm sun-dsbo-ed
    mpirun -n 10 sundsbo-mpi --topology ring.npz --set 'algorithm.step_y={scale=0.1, power=0.5}'

    Settings given later win: defaults, preset, config, flags, --set.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.comm.world import load_mpi

    load_mpi()  # first: the other imports would initialise MPI, whatever the launcher
    from sundsbo_mpi.config import Request
    from sundsbo_mpi.run import run
    from sundsbo_mpi.settings import flag_settings, merge

    layer = merge({"topology": given(dataclasses.asdict(reading))}, flag_settings(given(flags)))
    return run(Request(flags=layer, sets=sets, preset=preset, file=config))
