"""Formulas as MathML, which browsers show by themselves: no script is loaded from elsewhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)


def show(writer: HTML5Translator, node: nodes.math | nodes.math_block, *, block: bool) -> None:
    """Write a formula, inline or as a block, which may be wider than the page but no higher."""
    try:
        formula = tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        LOGGER.warning("formula: %s", error, location=node)
        formula = ""
    writer.body.append(
        f'<div class="math" style="overflow-y: hidden">{formula}</div>' if block else formula
    )
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the renderer."""
    inline, block = partial(show, block=False), partial(show, block=True)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
