"""The comparison on the terminal and in files: Markdown and CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import JustifyMethod

    from sundsbo_mpi.reproduce.comparison import Entry
    from sundsbo_mpi.reproduce.tables import Table


def rich_table(table: Table) -> RichTable:
    """Return the table for the terminal; of its words only the last column is broken."""
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(table.title))
    for place, name in enumerate(table.header):
        justify: JustifyMethod = "right" if place >= table.words else "left"
        whole = place < table.words - 1
        shown.add_column(Text(name), justify=justify, no_wrap=whole, overflow="fold")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    return shown


def markdown(heading: str, paragraphs: Iterable[str], tables: Sequence[Table]) -> str:
    """Return a page with all tables."""
    parts = [f"# {heading}", *(text for text in paragraphs if text)]
    for table in tables:
        parts += [f"## {table.title}", _markdown_table(table)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    rule = ["---" if place < table.words else "---:" for place in range(len(table.header))]
    lines = [table.header, rule, *table.rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


HEADER = (
    *("experiment", "condition", "method", "metric", "iteration"),
    *("ours_mean", "ours_std", "seeds", "paper_mean", "paper_std", "difference", "deviations"),
)


def write_csv(path: Path, entries: Iterable[Entry]) -> None:
    """Write one line per number of the table; what is unknown stays empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for entry in entries:
            printed = (entry.paper_mean, entry.paper_std, entry.difference, entry.deviations)
            where = (entry.experiment, entry.condition, entry.method, entry.metric)
            known = ["" if math.isnan(value) else value for value in (*entry.ours, *printed)]
            writer.writerow([*where, entry.iteration, *known])
