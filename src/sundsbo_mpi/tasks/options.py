"""Checks of the options that a user sets with ``--set task.name=value``."""

from __future__ import annotations

import math

from sundsbo_mpi.errors import UsageError


def require_count(name: str, value: object) -> None:
    """Refuse an option that is not an integer of at least 1.

    Raises:
        UsageError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"task.{name} is {value!r}: give an integer of at least 1.")


def require_number(name: str, value: object, low: float, high: float = math.inf) -> None:
    """Refuse an option that is not a finite number with low <= value <= high.

    Raises:
        UsageError: It is not.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:  # type: ignore[arg-type, operator]
        upto = "" if high == math.inf else f" and at most {high:g}"
        raise UsageError(f"task.{name} is {value!r}: give a number of at least {low:g}{upto}.")
