"""Range checks of the options that a user sets, by their full names such as ``task.batch``."""

from __future__ import annotations

import math
import reprlib
from typing import TypeGuard

from sundsbo_mpi.errors import UsageError

LARGEST_COUNT = 1_000_000
"""Of anything that is done or kept that many times; more are a slip, and would hang a run."""


def require_integer(name: str, value: object, least: int, most: int = LARGEST_COUNT) -> None:
    """Refuse an option that is not an integer with least <= value <= most.

    Raises:
        UsageError: It is not.
    """
    if not _is_number(value) or not isinstance(value, int) or not least <= value <= most:
        raise _refusal(name, value, f"an integer of at least {least}", most)


def require_number(name: str, value: object, least: float, most: float = math.inf) -> None:
    """Refuse an option that is not a finite number with least <= value <= most.

    Raises:
        UsageError: It is not.
    """
    if not _is_number(value) or not least <= value <= most:
        raise _refusal(name, value, f"a number of at least {least:g}", most)


def require_positive(name: str, value: object, most: float = math.inf) -> None:
    """Refuse an option that is not a finite number with 0 < value <= most.

    Raises:
        UsageError: It is not.
    """
    if not _is_number(value) or not 0 < value <= most:
        raise _refusal(name, value, "a number above 0", most)


def _is_number(value: object) -> TypeGuard[float]:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return -math.inf < value < math.inf


def _refusal(name: str, value: object, expected: str, most: float) -> UsageError:
    limit = "" if most == math.inf else f" and at most {most:.16g}"
    return UsageError(f"{name} is {reprlib.repr(value)}: expected {expected}{limit}.")
