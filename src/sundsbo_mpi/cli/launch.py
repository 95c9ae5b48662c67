"""``sundsbo-mpi launch``: write a batch script for the user's settings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sundsbo_mpi.cli.flags import flags, overwrite_option, topology_option
from sundsbo_mpi.cli.named import Named
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from collections.abc import Callable

C = TypeVar("C", bound="Callable[..., Any]")
TIME = re.compile(r"(?:(?:(?P<d>\d+)-)?(?P<h>\d+):(?P<m>\d\d):(?P<s>\d\d)|(?P<minutes>\d+))")
NEEDS = ("seconds", "nodes", "cores", "gpus", "partition", "account", "constraint")


class Duration(click.ParamType[int]):
    """A time limit in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read hours, minutes and seconds, or minutes alone."""
        if (found := TIME.fullmatch(str(value))) is None:
            self.fail(f"{value}: expected H:MM:SS, D-HH:MM:SS, or minutes.", param, ctx)
        part = {key: int(text or 0) for key, text in found.groupdict().items()}
        hours = 24 * part["d"] + part["h"]
        return 3600 * hours + 60 * (part["m"] + part["minutes"]) + part["s"]


@click.group(name="launch", cls=Named, kind="scheduler")
def command() -> None:
    """Write a batch script whose job goes on until the run is done.

    \b
    sundsbo-mpi launch slurm --agents 10 --topology ring.npz --time 4:00:00
    sundsbo-mpi launch pbs --topology ring.npz --time 4:00:00 -- --iterations 5000

    Before its time is over the run keeps a checkpoint; the job then comes again and goes on.
    """  # noqa: D301  (click takes the character \b, not a backslash)


class _Writer(click.Command):
    """A command that knows the flags of ``run``, which go behind its own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say where they go."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from sundsbo_mpi.cli.run import command as run

            flag = error.option_name
            if any(flag in parameter.opts for parameter in run.params):
                raise UsageError(
                    f"{flag} is a flag of 'sundsbo-mpi run': write it behind --, as in "
                    f"'... -- {flag} ...'."
                ) from None
            raise


_NUMBER = click.IntRange(1)
_shared = flags(
    topology_option(help="Weight matrix or graph."),
    click.option(
        "--agents", type=_NUMBER, metavar="N", help="Ranks; by default those of the topology."
    ),
    click.option(
        "--name",
        default="sundsbo",
        show_default=True,
        metavar="NAME",
        help="Of the job, NAME.h5, NAME.saved.",
    ),
    click.option("--time", "seconds", type=Duration(), metavar="H:MM:SS", help="Time limit."),
    click.option("--nodes", type=_NUMBER, metavar="N", help="Spread the agents over so many."),
    click.option("--cores-per-agent", "cores", type=_NUMBER, metavar="N", help="Cores of each."),
    click.option("--partition", metavar="NAME", help="Partition or queue."),
    click.option("--account", metavar="NAME", help="Account, project or bank."),
    click.option(
        "--setup",
        multiple=True,
        metavar="COMMAND",
        help="Before the start, such as 'module load openmpi'; may be repeated.",
    ),
    click.option(
        "--notice",
        type=click.IntRange(1, 65535),
        default=180,
        show_default=True,
        metavar="SECONDS",
        help="Stop so long before the end (Slurm: up to a minute more); a few iterations and a "
        "checkpoint must fit.",
    ),
    click.option(
        "--restarts",
        "again",
        type=click.IntRange(0),
        default=50,
        show_default=True,
        metavar="N",
        help="How often the job may come again.",
    ),
    click.option(
        "-o",
        "--output",
        metavar="FILE",
        type=click.Path(),
        help="The script; by default after its name.",
    ),
    overwrite_option(help="Replace the script if it exists."),
    click.argument("flags", nargs=-1, type=click.UNPROCESSED, metavar="[-- FLAGS OF RUN...]"),
)
_GPUS_PER_NODE = click.option(
    "--gpus-per-node", "gpus", type=_NUMBER, metavar="N", help="GPUs of each node."
)


@command.command(cls=_Writer)
@_shared
@_GPUS_PER_NODE
@click.option("--constraint", metavar="FEATURES", help="Of the nodes.")
@click.option(
    "--mpi",
    metavar="pmix|pmi2|cray_shasta|mpirun",
    help="How ranks start: a type of srun --mpi, or mpirun; by default after the MPI wheel here.",
)
@click.option(
    "--array",
    multiple=True,
    metavar="TABLE.KEY=[VALUE, ...]",
    help="One run for each value; may be repeated, for every combination.",
)
def slurm(mpi: str | None, **options: Any) -> None:
    """Write an sbatch script.

    \b
    sundsbo-mpi launch slurm --topology ring.npz --time 4:00:00 --mpi pmi2
    sundsbo-mpi launch slurm --topology ring.npz --gpus-per-node 4 --nodes 2 -- --device cuda
    sundsbo-mpi launch slurm --topology ring.npz --array 'run.seed=[0, 1, 2]' \\
        --array 'algorithm.name=["sun-dsbo-gt", "sun-dsbo-ed"]' -- --task hyper-representation
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.batch import launcher, usual_mpi

    _write("slurm", launcher(usual_mpi() if mpi is None else mpi), options)


@command.command(cls=_Writer)
@_shared
@_GPUS_PER_NODE
def pbs(**options: Any) -> None:
    """Write a script for qsub of PBS Pro or OpenPBS.

    \b
    sundsbo-mpi launch pbs --topology ring.npz --time 4:00:00 --partition workq
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.batch import BY_MPIRUN, launcher

    _write("pbs", launcher(BY_MPIRUN), options)


@command.command(cls=_Writer)
@_shared
@click.option("--gpus-per-agent", "gpus", type=_NUMBER, metavar="N", help="GPUs of each agent.")
def flux(**options: Any) -> None:
    """Write a script for flux batch.

    \b
    sundsbo-mpi launch flux --topology ring.npz --time 4:00:00 --nodes 2
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.batch import by_flux

    gpus = ["-g", str(options["gpus"])] if options["gpus"] else []
    cores = ["-c", str(options["cores"])] if options["cores"] else []
    _write("flux", by_flux(*cores, *gpus), options)


def _write(kind: str, words: list[str], options: dict[str, Any]) -> None:
    """Check the settings, write the script, and say what it does and how it is submitted."""
    from sundsbo_mpi.batch import SCHEDULERS, Batch, Resources, plain, program, script, write
    from sundsbo_mpi.cli.batch_runs import planned

    scheduler, name = SCHEDULERS[kind], options["name"]
    needs = {key: options[key] for key in NEEDS if key in options}
    manner = {key: options[key] for key in ("notice", "again", "setup")}
    flags = options["flags"]
    if options["topology"] is not None:
        flags = ("--topology", options["topology"], *flags)
    runs = planned(name, flags, options.get("array", ()), options["agents"])
    batch = Batch(name, runs, words, program(), Resources(**needs), directory=Path.cwd(), **manner)
    path = Path(plain("--output", options["output"] or f"{name}{scheduler.suffix}"))
    write(path, script(batch, scheduler, path.absolute()), overwrite=options["overwrite"])
    first, last = runs[0], runs[-1]
    files = f"{first.output}, checkpoints in {first.checkpoint}"
    if len(runs) > 1:
        files = f"{len(runs)} runs, {first.output} to {last.output}"
    click.echo(f"wrote {path}: {number_of(batch.agents, 'agent')}, {files}")
    click.echo(f"submit with: {scheduler.submit} {shlex.quote(str(path))}")
