"""Where the time of an iteration goes, as stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.clock import PHASES
from sundsbo_mpi.pictures.figures import COLOURS
from sundsbo_mpi.texttable import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

OTHER = "0.7"
"""Grey, for what no phase accounts for."""


def draw_bars(
    axes: Axes, seconds: Mapping[str, NDArray[np.float64]], labels: Sequence[str]
) -> None:
    """Stack the seconds of the phases, in ms, one bar below the other.

    Args:
        axes: Where to draw.
        seconds: Per iteration, by phase or "other", one number for every bar; NaN counts as none.
        labels: What stands beside the bars.
    """
    places, ends = np.arange(len(labels)), np.zeros(len(labels))
    colours = dict(zip(PHASES, COLOURS, strict=False))
    for name, values in seconds.items():
        width = 1000 * np.nan_to_num(values)
        if width.any():
            look: dict[str, Any] = {
                "color": colours.get(name, OTHER),
                "edgecolor": "white",
                "linewidth": 0.8,
            }
            axes.barh(places, width, left=ends, height=0.7, label=name, **look)
            ends += width
    for place, end in zip(places, ends, strict=True):
        axes.annotate(
            f" {number(end)}" if end else " not measured", (end, place), va="center", fontsize=9
        )
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.08)
