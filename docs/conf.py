"""How the documentation is built: ``sphinx-build -W -n docs build/docs``.

Sphinx since it checks its links and reads docstrings; MyST so that pages are Markdown; sphinx-click
so that the commands' reference is what ``--help`` prints; furo, which needs no tuning.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))  # for extensions of our own

from sundsbo_mpi import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "sundsbo-mpi"
author = "The sundsbo-mpi authors"
copyright = "2026, the sundsbo-mpi authors"
version = release = __version__

extensions = [
    "mathml",
    "myst_parser",
    "registry",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"sundsbo-mpi {release}"
highlight_language = "text"  # of what is not said to be code
smartquotes = False  # they would make a dash of what begins a flag

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # autodoc's options hold no function that could be compared

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature in the source says more than an expanded one
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
nitpick_ignore = [  # of the alias of a generic type
    ("py:class", "collections.abc.Generator"),
    ("py:obj", "sundsbo_mpi.composition.techniques.T"),
]
COLON = "\ue000"
"""Stands for a colon while napoleon reads: it takes what is before one for a type."""


def show_as_written(
    _app: Sphinx, what: str, _name: str, _of: Any, _options: Any, lines: list[str]
) -> None:
    """Keep the lines of indented blocks, which are equations; run before napoleon."""
    if what in ("attribute", "data", "property"):
        lines[0] = lines[0].replace(":", COLON)
    for i in range(len(lines) - 1, 1, -1):
        before, blank, line = lines[i - 2 : i + 1]
        if line.startswith("    ") and not blank.strip() and not before.startswith(" "):
            lines[i:i] = ["::", ""]


def bring_back_colons(
    _app: Sphinx, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]
) -> None:
    """Run after napoleon."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def show_examples(_app: Sphinx, _context: Any, lines: list[str]) -> None:
    """Show the lines of a command's help that keep their form, which are examples, as code."""
    shown: list[str] = []
    for line in lines:
        kept = line.startswith("| ")
        if kept and not shown[-1].startswith("   "):
            shown += ["::", ""]
        shown.append("   " + line[2:] if kept else line.replace("*", "\\*"))
    lines[:] = shown


def setup(app: Sphinx) -> None:
    """Tell Sphinx of these."""
    app.connect("autodoc-process-docstring", show_as_written, priority=400)
    app.connect("autodoc-process-docstring", bring_back_colons, priority=600)
    app.connect("sphinx-click-process-description", show_examples)
    app.connect("sphinx-click-process-options", show_examples)
