"""The flags that say where, how fast and how safely a run computes, the same wherever one runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from sundsbo_mpi.cli.flags import flags
from sundsbo_mpi.comm.transports import TRANSPORTS
from sundsbo_mpi.config.tables import ON_FAILURE, ON_NAN

if TYPE_CHECKING:
    from collections.abc import Callable

C = TypeVar("C", bound="Callable[..., Any]")


class Interval(click.ParamType[tuple[int, float]]):
    """A number of iterations, or of seconds with an s at its end, as (iterations, seconds)."""

    name = "interval"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, float]:
        """Read it."""
        text = str(value)
        try:
            return (0, float(text[:-1])) if text.endswith("s") else (int(text), 0.0)
        except ValueError:
            self.fail(f"{text}: expected iterations, as in 100, or seconds, as in 600s", param, ctx)


machine_options = flags(
    click.option("--device", metavar="auto|cpu|cuda", help="Where each agent computes."),
    click.option(
        "--place", is_flag=True, help="Choose each rank's agent so that few links cross nodes."
    ),
    click.option(
        "--overlap",
        metavar="auto|always|never",
        help="Move messages while the gradient is computed.",
    ),
    click.option(
        "--transport",
        metavar="|".join(TRANSPORTS),
        help="What messages travel over; 'sundsbo-mpi list' tells.",
    ),
    click.option(
        "--gpu-direct",
        is_flag=True,
        help="Hand GPU buffers to an MPI library built for these GPUs.",
    ),
    click.option(
        "--max-walltime",
        type=float,
        metavar="SECONDS",
        help="Stop together so long after the start, imports too; exit 85.  Kept when resumed.",
    ),
    click.option(
        "--comm-timeout",
        type=float,
        metavar="SECONDS",
        help="End a job that hangs so long in one iteration.",
    ),
    click.option("--on-nan", metavar="|".join(ON_NAN), help="What non-finite numbers lead to."),
    click.option(
        "--on-failure", metavar="|".join(ON_FAILURE), help="What an agent's loss leads to."
    ),
    click.option(
        "--trace",
        metavar="FILE.json",
        type=click.Path(),
        help="Timeline of all agents for ui.perfetto.dev.",
    ),
)
checkpoint_options = flags(
    click.option(
        "--checkpoint",
        metavar="DIR",
        type=click.Path(),
        help="Keep checkpoints there; 'resume DIR' goes on.",
    ),
    click.option(
        "--checkpoint-every",
        type=Interval(),
        metavar="N|SECONDSs",
        help="Iterations, or seconds, between checkpoints; 600s unless given.",
    ),
)


def given(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the flags that were given, neither None nor a switch that is off, by setting."""
    found = {k: v for k, v in flags.items() if v is not None and v is not False}
    if "checkpoint_every" in found:
        found["checkpoint_every"], found["checkpoint_seconds"] = found["checkpoint_every"]
    return found
