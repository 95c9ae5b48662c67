"""Step sizes, penalties and momentum weights as functions of the iteration: k -> value."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TypeAlias

from sundsbo_mpi.errors import UsageError, brief

Schedule: TypeAlias = Callable[[int], float]
Scheduled: TypeAlias = float | Mapping[str, float]
"""What a user writes: a number, ``{scale, power}`` or ``{theorem}``."""


def constant(value: float) -> Schedule:
    """Return k -> value."""
    return lambda _k: value


def power_decay(scale: float, power: float) -> Schedule:
    """Return k -> scale (1 + k)^-power."""
    return lambda k: scale * float(1 + k) ** -power


def theorem_rate(c: float, agents: int, iterations: int) -> Schedule:
    """Return k -> c n^(1/2) K^(-1/2), the step of Theorems 1 and 2 of the SUN-DSBO paper."""
    return constant(c * (agents / iterations) ** 0.5)


def as_schedule(name: str, value: Scheduled, *, agents: int, iterations: int) -> Schedule:
    """Read the value that a user gave to the option ``name``.

    Raises:
        UsageError: it is neither a number, ``{scale, power}`` nor ``{theorem}``.
    """
    given = list(value.values()) if isinstance(value, Mapping) else [value]
    if all(_finite(v) for v in given):
        match value:
            case int() | float():
                return constant(float(value))
            case {"scale": scale, "power": power} if len(given) == 2:
                return power_decay(float(scale), float(power))
            case {"theorem": c} if len(given) == 1:
                return theorem_rate(float(c), agents, iterations)
            case _:
                pass
    raise UsageError(
        f"{name} is {brief(value)}: expected a number, {{scale = a, power = p}} for a (1 + k)^-p, "
        "or {theorem = c} for c sqrt(n / K)."
    )


def _finite(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    # Compared as they are: an integer may be too large for a float.
    return -sys.float_info.max <= value <= sys.float_info.max
