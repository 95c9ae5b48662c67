"""What pictures have in common: the axes of a metric, the look of curves, the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.metric_names import direction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from sundsbo_mpi.runfile import RunData
    from sundsbo_mpi.runfile.schema import Array

# Okabe and Ito (2008), "Color Universal Design", with a dark grey for black, and without yellow for
# its low contrast on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "0.35")
PANELS = ("iterations", "seconds of training", "bytes sent per agent (payload, mean)")
# One more, so that 56 curves differ in one of the two.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
OF_VARIABLES = {"consensus": "consensus error", "invariant": "defect of the average"}
DASHED: dict[str, Any] = {"linewidth": 1, "linestyle": "--"}
"""The look of the mean over the agents' own models, beside the averaged model."""
PICTURES = (".png", ".pdf", ".svg")


def new_figure(**options: Any) -> Figure:
    """Make an empty figure that belongs to no window.

    Raises:
        UsageError: matplotlib is missing.
    """
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            "drawing needs matplotlib, which is not installed: run pip install 'sundsbo-mpi[plot]'."
        ) from None
    rcParams["text.usetex"] = False  # as a user's own settings may say: names are no TeX
    return Figure(**options)


def prepare(panels: Sequence[Axes]) -> None:
    """Label three panels, one for each of ``PANELS``."""
    for axis, axes in enumerate(panels):
        prepare_panel(axes, axis)


def prepare_panel(axes: Axes, axis: int) -> None:
    """Label a panel whose horizontal axis is that of this number in ``PANELS``."""
    from matplotlib.ticker import EngFormatter

    axes.set_xlabel(PANELS[axis])
    axes.locator_params(axis="x", nbins=5, integer=axis == 0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if axis == 2:
        axes.xaxis.set_major_formatter(EngFormatter(unit="B"))


def make_logarithmic(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers beside it.

    Those are read at once, and drawn in a tenth of the time that powers of ten take as formulas.
    """
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f"{x:g}" if super().__call__(x, pos) else ""

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(Plain())
    axes.yaxis.set_minor_formatter(Plain(minor_thresholds=(1.5, 0.5)))


def draw_table(axes: Axes, table: Array, column: str, row: str) -> AxesImage:
    """Draw the numbers of a table as colours, the first row on top; NaN stays empty."""
    from matplotlib.ticker import MaxNLocator

    # Of one kind of colour from light to dark, which every eye can order.
    image = axes.imshow(table, cmap="cividis", vmin=0, aspect="auto", interpolation="nearest")
    axes.set_xlabel(column)
    axes.set_ylabel(row)
    for side in (axes.xaxis, axes.yaxis):
        side.set_major_locator(MaxNLocator(integer=True, nbins=12))
    axes.spines[:].set_visible(False)
    return image


def check_picture(output: str | Path) -> None:
    """Refuse a name that does not say the kind of picture, to which matplotlib would add one.

    Raises:
        UsageError: The suffix is none of ``PICTURES``.
    """
    suffix = Path(output).suffix
    if suffix.lower() not in PICTURES:
        raise UsageError(
            f"cannot save '{output}': its suffix is '{suffix}', expected one of "
            f"{', '.join(PICTURES)}; change the name."
        )


def save_picture(figure: Figure, output: str | Path, *, bbox: str | None = None) -> None:
    """Save the picture under exactly the name that ``check_picture`` let pass.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        figure.savefig(output, dpi=150, bbox_inches=bbox)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot save '{output}': {reason(error)}; choose another name."
        ) from error


def axis_label(metric: str) -> str:
    """Return the metric as words, with its unit where that is known."""
    kind, _, variable = metric.rpartition("/")
    words = f"{OF_VARIABLES[kind]} of {variable}" if kind else metric.replace("_", " ")
    return f"{words} (%)" if "accuracy" in metric else words


def positive(runs: Sequence[RunData], name: str) -> bool:
    """Say whether a metric belongs on a logarithmic axis: less is better, or a consensus error."""
    if direction(name) >= 0 and "/" not in name:
        return False
    values = np.concatenate([run.curves[name] for run in runs])
    return bool((values[np.isfinite(values)] > 0).any())


def style(number: int) -> dict[str, Any]:
    """Return the look of a curve by its number: neighbours differ in colour and in marker."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4,
        "linewidth": 1.6,
    }
