"""Tables of text, which are printed and written alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sundsbo_mpi.texttable import DASH, number, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sundsbo_mpi.statistics import Spread


@dataclass(frozen=True)
class Table:
    """Text in rows below a title; the first ``words`` columns hold words, the others numbers."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1


def rich_table(made: Table) -> RenderableType:
    """Return the table for the terminal; of its words only the last column is broken."""
    return table(made.header, made.rows, title=made.title, words=made.words, whole=made.words - 1)


def spread_text(value: Spread, show: Callable[[float], str] = number) -> str:
    """Write a mean, and its deviation where that is known; a dash where there is no mean."""
    if math.isnan(value.mean):
        return DASH
    return show(value.mean) + (f" ± {show(value.std)}" if math.isfinite(value.std) else "")


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
