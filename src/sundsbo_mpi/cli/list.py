"""``sundsbo-mpi list``: what there is to choose from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from sundsbo_mpi.cli.option_table import print_options

if TYPE_CHECKING:
    from sundsbo_mpi.composition import Oracles


LEGEND = (
    "level: of the lower problem, S.C. must be strongly convex, N.C. may be nonconvex; "
    "gradients: heterogeneity assumed of the upper/lower ones, BG bounded, BG* bounded at the "
    "lower solution, BGD bounded dissimilarity, Free none, Free- other conditions; "
    "- not in the paper's comparison; oracles: gradients of f and g, HVP and JVP Hessian- and "
    "Jacobian-vector products of g (of dsbo and gossip-dsbo with a matrix), per iteration with "
    "default options; sent: rounds/vectors per iteration to each neighbour, a vector being as "
    "long as its variable; W: any doubly stochastic matrices, even changing ones, or symmetric "
    "ones, of which all eigenvalues exceed -1/3 where it says so, as those of (I + W)/2 always "
    "do (--set algorithm.lazy=true), and for which there is no theory where they change."
)
"""What the columns of the algorithms mean."""


OPTIONS = "The options of a method or task, and what they are for: sundsbo-mpi list NAME"


@click.command(name="list")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List what there is to choose from, or the options of the method or task NAME.

    \b
    sundsbo-mpi list
    sundsbo-mpi list sun-dsbo-gt        the options of a method
    sundsbo-mpi list hyper-cleaning     those of a task
    sundsbo-mpi list ridge.py:Ridge     those of a task of your own
    """  # noqa: D301  (click takes the character \b, not a backslash)
    if name is None:
        _everything()
    else:
        print_options(name)


def _everything() -> None:
    from sundsbo_mpi.comm.transports import TRANSPORTS
    from sundsbo_mpi.composition.estimators import ESTIMATORS
    from sundsbo_mpi.composition.rounding import WIRE_DTYPES
    from sundsbo_mpi.composition.techniques import TECHNIQUES
    from sundsbo_mpi.config.settings import presets
    from sundsbo_mpi.tasks import TASKS
    from sundsbo_mpi.texttable import console as new_console
    from sundsbo_mpi.topology import topologies

    console = new_console()
    console.print(_algorithms())
    console.print(
        f"{LEGEND}\n",
        markup=False,
    )
    for title, names in (
        ("estimators", ESTIMATORS),
        ("techniques of a variable (--set algorithm.x=NAME)", TECHNIQUES),
        ("16-bit messages (--set algorithm.wire=NAME)", WIRE_DTYPES),
        ("topologies", topologies()),
        ("presets", presets()),
    ):
        console.print(f"[bold]{title}[/bold]: {', '.join(names)}")
    transports = {name: transport.about for name, transport in TRANSPORTS.items()}
    for title, described in (
        ("compressors of messages (--set algorithm.compressor=NAME)", _compressors()),
        ("transports of messages (--transport NAME)", transports),
        ("tasks", {name: task.about for name, task in TASKS.items()}),
    ):
        console.print(f"[bold]{title}[/bold]:")
        for name, description in described.items():
            console.print(f"  {name}: {description}", markup=False)
    console.print(f"\n{OPTIONS}", markup=False)


def _compressors() -> dict[str, str]:
    """Describe each by the options that it heeds, with their values unless others are set."""
    from sundsbo_mpi.composition.compressors import COMPRESSORS, Coarseness

    described = {}
    for name, offer in COMPRESSORS.items():
        values = {option: getattr(Coarseness, option) for option in offer.options}
        values["gamma_c"] = offer.gamma_c
        said = ", ".join(f"{option}={value:g}" for option, value in values.items())
        described[name] = said if offer.dense else f"{said}; not where W must be symmetric"
    return described


def _oracles(price: Oracles) -> str:
    """Say for example ``f 2g`` or ``f g HVP JVP``."""
    names = {"f": "f", "g": "g", "hvp": "HVP", "jvp": "JVP"}
    called = [(count, names[name]) for name, count in price._asdict().items() if count]
    return " ".join(f"{count if count > 1 else ''}{name}" for count, name in called)


def _weights(lambda_min: float) -> str:
    from sundsbo_mpi.algorithms.safety import bound_text

    if lambda_min == -math.inf:
        return "any"
    return "sym" if lambda_min == -1 else f"sym>{bound_text(lambda_min)}"


def _algorithms() -> object:
    from rich.table import Table

    from sundsbo_mpi.algorithms import METHODS, by_default

    table = Table(box=None, padding=(0, 1, 0, 0))
    for heading in ("algorithm", "level", "gradients", "oracles", "sent", "W"):
        table.add_column(heading, no_wrap=True)
    for name, entry in METHODS.items():
        built = by_default(entry)
        table.add_row(
            name,
            entry.convexity,
            entry.heterogeneity,
            _oracles(built.oracles),
            f"{built.rounds}/{built.vectors}",
            _weights(built.lambda_min),
        )
    return table
