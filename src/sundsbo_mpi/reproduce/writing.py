"""The comparison on the terminal and in files: Markdown and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.csvfile import write_csv
from sundsbo_mpi.texttable import table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sundsbo_mpi.reproduce.comparison import Entry
    from sundsbo_mpi.reproduce.tables import Table


def rich_table(made: Table) -> RenderableType:
    """Return the table for the terminal; of its words only the last column is broken."""
    return table(made.header, made.rows, title=made.title, words=made.words, whole=made.words - 1)


def markdown(heading: str, paragraphs: Iterable[str], tables: Sequence[Table]) -> str:
    """Return a page with all tables."""
    parts = [f"# {heading}", *(text for text in paragraphs if text)]
    for one in tables:
        parts += [f"## {one.title}", _markdown_table(one)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(made: Table) -> str:
    rule = ["---" if place < made.words else "---:" for place in range(len(made.header))]
    lines = [made.header, rule, *made.rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


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
