"""What all methods share: common options, the horizon, and how options become schedules."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sundsbo_mpi.composition import Algorithm
from sundsbo_mpi.composition.compressors import Coarseness
from sundsbo_mpi.composition.schedules import Schedule, as_schedule
from sundsbo_mpi.options import require_number


@dataclass(frozen=True)
class MethodOptions(Coarseness):
    """What every method offers (``--set algorithm.NAME=VALUE``).

    How messages travel is the matter of ``rounding.Rounded``, ``compression.Compressed`` and
    ``private.Private``.  Options with checks of their own make these checks too:
    ``super().__post_init__()``.

    Args:
        lazy: Whether to mix with (I + W)/2 in place of W.
        gossip_steps: The number m of rounds, which mix with W^m, or with ((I + W)/2)^m if lazy.
        wire: "fp16" or "bf16", 16 bits in which numbers travel; if not set, in the run's dtype.
        compressor: Name of a compressor, whose messages travel with error feedback; if not set,
            they travel whole.
        gamma_c: Share of the way to the neighbours' average that an agent goes in a round, with a
            compressor; if not set, the compressor's own.
        private: Whether coordinates of x that only one agent's data touch are not sent.
    """

    lazy: bool = False
    gossip_steps: int = 1
    wire: str | None = None
    compressor: str | None = None
    gamma_c: float | None = None
    private: bool = False

    def remarks(self) -> tuple[str, ...]:
        """Say where these options leave the theory of the method."""
        return ()


class Horizon(NamedTuple):
    """n and K, which a schedule may depend on."""

    agents: int
    iterations: int


class Method(NamedTuple):
    """A method and its row of the paper's comparison table."""

    build: Callable[[Any, Horizon], Algorithm]
    options: type[MethodOptions]
    convexity: str
    """Of the lower level: S.C. strongly convex, N.C. nonconvex, - not analysed."""
    heterogeneity: str
    """Assumed of upper/lower gradients, as in the paper's comparison table; - not analysed."""


def schedules(
    options: MethodOptions, names: dict[str, str], horizon: Horizon, most: float = math.inf
) -> dict[str, Schedule]:
    """Read schedules from the options: ``names`` maps each variable to the option that it has.

    Args:
        options: The options of the method.
        names: For example ``{"x": "step_x"}``.
        horizon: What a schedule may depend on.
        most: The largest value that makes sense.

    Raises:
        UsageError: an option is no schedule, or negative, not finite or above ``most``.
    """
    found = {}
    for variable, name in names.items():
        schedule = as_schedule(f"algorithm.{name}", getattr(options, name), **horizon._asdict())
        for k in (0, horizon.iterations - 1):  # schedules are monotone
            require_number(f"algorithm.{name} in iteration {k}", _value(schedule, k), 0, most)
        found[variable] = schedule
    return found


def steps(options: MethodOptions, *variables: str, horizon: Horizon) -> dict[str, Schedule]:
    """Read the step sizes ``step_<variable>``; raises as ``schedules`` does."""
    return schedules(options, {v: f"step_{v}" for v in variables}, horizon)


def _value(schedule: Schedule, k: int) -> float:
    try:
        return float(schedule(k))
    except OverflowError:
        return math.inf
