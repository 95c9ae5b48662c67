"""Benches beside one another as a picture: seconds against the bytes of a message."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.bench.parts import ALL
from sundsbo_mpi.bench.record import NOTHING, Key
from sundsbo_mpi.compare.bench_facts import all_keys, words
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.pictures.figures import new_figure, save_picture, style
from sundsbo_mpi.pictures.labels import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from sundsbo_mpi.compare.reading import NamedBench

MOST_COLUMNS = 3


def draw(benches: Sequence[NamedBench], output: Path) -> None:
    """Draw a panel for every series over all links, or over none, and save the picture.

    A line is the median of a bench's slowest rank.

    Raises:
        UsageError: The benches hold nothing to draw, matplotlib is missing, or the picture cannot
            be saved.
    """
    found = [named.bench for named in benches]
    keys = [key for key in all_keys(found) if key.links in (ALL, NOTHING)]
    if not keys:
        raise UsageError(f"cannot draw '{output}': the benches have measured no series.")
    columns = min(len(keys), MOST_COLUMNS)
    rows = math.ceil(len(keys) / columns)
    figure = new_figure(figsize=(11, 0.6 + 2.6 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[len(keys) :]:
        axes.set_visible(False)
    lines: dict[str, Line2D] = {}
    for axes, key in zip(panels, keys, strict=False):
        _panel(axes, key, benches, lines)
    figure.supxlabel("bytes of a message")
    figure.supylabel("seconds (median of the slowest rank)")
    ordered = sorted(lines)
    handles = [lines[name] for name in ordered]
    figure.legend(handles, ordered, loc="outside upper center", ncols=3, frameon=False)
    save_picture(figure, output)


def _panel(axes: Axes, key: Key, benches: Sequence[NamedBench], lines: dict[str, Line2D]) -> None:
    axes.set_title(words(key), fontsize="medium")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    for place, named in enumerate(benches):
        if key in named.bench.series:
            seconds = named.bench.series[key].slowest
            (drawn,) = axes.plot(named.bench.sizes, seconds, **style(place))
            lines.setdefault(plain(f"{named.number} {named.path.stem}"), drawn)
