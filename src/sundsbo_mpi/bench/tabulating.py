"""Predictions as a table for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from sundsbo_mpi.bench.prediction import Prediction
from sundsbo_mpi.csvfile import write_csv
from sundsbo_mpi.texttable import seconds, size, table

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

HEADER = (
    *("method", "agents", "rounds", "vectors", "exchange", "iteration"),
    *("sent, busiest agent", "sent, all agents", "between nodes"),
)


def render_predictions(
    found: Sequence[Prediction], refused: Mapping[str, str], options: Iterable[str]
) -> RenderableType:
    """Return one row per method and network, and say by name why others cannot run.

    Args:
        found: The rows.
        refused: Why, by method.
        options: What was set in place of the methods' default options.
    """
    rows = [
        (
            *(one.method, str(one.agents), str(one.rounds), str(one.vectors)),
            *map(seconds, (one.exchange, one.iteration)),
            *map(size, (one.bytes_most, one.bytes_all, one.bytes_between)),
        )
        for one in found
    ]
    title = ", but ".join(("per iteration, with each method's default options", *options))
    title += "; bytes are those to all neighbours together"
    if all(one.iteration == one.exchange for one in found):
        title += "; without --gradient-seconds an iteration is its exchange"
    left_out = (
        Text(f"without {', '.join(name for name in refused if refused[name] == reason)}: {reason}")
        for reason in dict.fromkeys(refused.values())
    )
    return Group(table(HEADER, rows, title=title, whole=1), *left_out)


def write_predictions(path: Path, found: Sequence[Prediction]) -> None:
    """Write one line per method and network, with all numbers."""
    write_csv(path, list(map(asdict, found)), [field.name for field in fields(Prediction)])
