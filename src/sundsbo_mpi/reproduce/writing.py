"""The comparison as numbers for other programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.csvfile import write_csv

if TYPE_CHECKING:
    from sundsbo_mpi.reproduce.comparison import Entry


COLUMNS = (
    *("experiment", "condition", "method", "metric", "iteration"),
    *("ours_mean", "ours_std", "seeds", "paper_mean", "paper_std", "difference", "deviations"),
)


def write_entries(path: Path, entries: Iterable[Entry]) -> None:
    """Write one line per number of the table as CSV; what is unknown stays empty.

    Raises:
        UsageError: The file cannot be written.
    """
    rows = []
    for entry in entries:
        where = (entry.experiment, entry.condition, entry.method, entry.metric, entry.iteration)
        printed = (entry.paper_mean, entry.paper_std, entry.difference, entry.deviations)
        rows.append(dict(zip(COLUMNS, (*where, *entry.ours, *printed), strict=True)))
    write_csv(path, rows, COLUMNS)
