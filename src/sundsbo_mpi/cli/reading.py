"""The flags that say how to read a topology file, the same wherever one is read."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sundsbo_mpi.cli.flags import flags
from sundsbo_mpi.topology import FORMATS, Reading

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_FLAGS = flags(
    click.option(
        "--format",
        "form",
        metavar="|".join(FORMATS),
        help="Format, where the suffix does not tell.",
    ),
    click.option(
        "--weights", metavar="ATTRIBUTE", help="Edge attribute that holds the weights of a graph."
    ),
    click.option("--undirected", is_flag=True, help="Read a directed graph as an undirected one."),
)


def reading_options(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command the flags, and hand it what they say as the argument ``reading``."""

    @wraps(command)
    def read(
        *args: Any, form: str | None, weights: str | None, undirected: bool, **options: Any
    ) -> T:
        return command(*args, reading=Reading(form, weights, undirected), **options)

    return _FLAGS(read)
