"""Several flags for several commands, by one decorator."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

C = TypeVar("C", bound=Callable[..., Any])


def flags(*options: Callable[[C], C]) -> Callable[[C], C]:
    """Return what gives a command these options of click, in this order in its help."""
    return lambda command: reduce(lambda found, option: option(found), reversed(options), command)
