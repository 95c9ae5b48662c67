"""Pictures as SVG that stands within a page: no file of its own, and the page's own text colour."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from io import StringIO
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from sundsbo_mpi.errors import printable
from sundsbo_mpi.pictures.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#102030"
"""Stands for the colour of the page's text until the page has it."""
LOOK: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sundsbo-mpi",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.linewidth": 0.8,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
    "grid.color": INK,
    "grid.alpha": 0.25,
}
NOTHING = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""What matplotlib would write about itself."""
_numbers = itertools.count(1)


def inline(draw: Callable[[Figure], None], size: tuple[float, float], told: str) -> Markup:
    """Draw a figure and return it as the text of an ``svg`` element.

    Args:
        draw: Fills the empty figure.
        size: Width and height in inches; the page scales the picture.
        told: What a reader is told who does not see it.

    Raises:
        UsageError: matplotlib is missing.
    """
    figure = new_figure(figsize=size, layout="constrained")
    from matplotlib import rc_context

    written = StringIO()
    with rc_context(LOOK), warnings.catch_warnings():
        # Words stay words, which the reader's browser has letters for.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        draw(figure)
        figure.savefig(written, format="svg", transparent=True, metadata=NOTHING)
    return _adapted(written.getvalue(), told)


def _adapted(svg: str, told: str) -> Markup:
    """Make the names of parts unlike those of other pictures, and the size that of the page."""
    prefix = f"p{next(_numbers)}-"
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}", svg)
    opening, rest = svg.split(">", 1)
    opening = re.sub(r' (width|height)="[^"]*"', "", opening)
    return Markup(f'{opening} role="img" aria-label="{escape(printable(told))}">{rest}')
