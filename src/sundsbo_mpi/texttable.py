"""Tables of text for the terminal, and numbers as people write them."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import JustifyMethod, RenderableType

DASH = "–"
"""For what is not known."""
WIDTH = 160
"""Of what is written to a file or a pipe, which has none of its own."""


def console(*, launched: bool = False) -> Console:
    """Return where tables are printed.

    Args:
        launched: Whether a launcher may have started this: it gives rank 0 a terminal of its own
            and writes what comes there to a file, so the text is plain.
    """
    return Console(highlight=False, force_terminal=False if launched else None, width=_width())


def _width() -> int | None:
    """Return the width where the terminal does not tell it, as those that launchers make."""
    if "COLUMNS" in os.environ:
        return None
    with suppress(OSError):
        if os.get_terminal_size(sys.stdout.fileno()).columns:
            return None
    return WIDTH


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    words: int = 1,
    whole: int = 0,
) -> RenderableType:
    """Return a table; what does not fit into a column goes on below.

    Args:
        header: The names of the columns.
        rows: One text per column.
        title: What stands above.
        words: How many columns, the first ones, hold words; the others hold numbers.
        whole: How many of them are never broken.
    """
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    # Text, not str: names of files and topologies may hold rich's square brackets.
    for place, name in enumerate(header):
        justify: JustifyMethod = "left" if place < words else "right"
        shown.add_column(Text(name), justify=justify, no_wrap=place < whole, overflow="fold")
    for row in rows:
        shown.add_row(*map(Text, row))
    # A title of rich's own would be broken at the width of the table.
    return Group(Text(title, style="bold"), shown) if title else shown


def number(value: float) -> str:
    """Write a number with four digits, and a dash for NaN."""
    if math.isnan(value):
        return DASH
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value)}"
    return f"{value:.4g}"


def seconds(value: float) -> str:
    """Write a time with three digits and its unit."""
    if math.isnan(value):
        return DASH
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def duration(spent: float) -> str:
    """Write seconds as people say them, in hours, minutes or seconds."""
    if spent < 60:
        return f"{spent:.3g} s"
    minutes, rest = divmod(round(spent), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def size(count: float, digits: int = 3) -> str:
    """Write a number of bytes with its unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.{digits}g} {unit}"
        count /= 1000
    return f"{count:.{digits}g} TB"
