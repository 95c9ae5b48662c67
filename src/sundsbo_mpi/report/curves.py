"""The curves of one run: what was measured against iterations, seconds and bytes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sundsbo_mpi.metric_names import local_name, without_local
from sundsbo_mpi.pictures.figures import (
    DASHED,
    PANELS,
    axis_label,
    make_logarithmic,
    positive,
    prepare_panel,
    style,
)
from sundsbo_mpi.pictures.labels import plain
from sundsbo_mpi.pictures.mean_curves import draw_line, mean_curve
from sundsbo_mpi.report.inline import inline
from sundsbo_mpi.runfile.schema import SCALARS
from sundsbo_mpi.texttable import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sundsbo_mpi.runfile import RunData

SIZE = (4.3, 3.2)
TOGETHER = ("accuracy", "loss", "error")
"""Words by which metrics of a task share their panels; of others, the first word is that."""


class Curves(NamedTuple):
    """Some metrics that share their panels, and a panel for every axis."""

    title: str
    panels: list[Markup]


def curves(run: RunData) -> list[Curves]:
    """Draw all that a run has measured, the task's metrics first."""
    return [
        Curves(title, [_panel(run, names, axis) for axis in range(len(PANELS))])
        for title, names in families(run).items()
    ]


def families(run: RunData) -> dict[str, list[str]]:
    """Return the metrics that are drawn together, by the word that they have in common."""
    shown = [
        name
        for name in without_local(run.curves)
        if np.isfinite(run.curves[name]).any() and not name.startswith("invariant/")
    ]
    found: dict[str, list[str]] = {}
    for name in shown:
        found.setdefault(_family(name), []).append(name)
    return {names[0] if len(names) == 1 else title: names for title, names in found.items()}


def _family(name: str) -> str:
    if name.startswith("consensus/"):
        return "consensus error"
    if name in SCALARS:
        return name
    return next((word for word in TOGETHER if word in name), name.partition("_")[0])


def _panel(run: RunData, names: Sequence[str], axis: int) -> Markup:
    ends = "; ".join(
        f"{axis_label(name)} from {number(run.curves[name][0])} to {number(run.curves[name][-1])}"
        for name in names
    )
    return inline(partial(_draw, run, names, axis), SIZE, f"Curve against {PANELS[axis]}: {ends}.")


def _draw(run: RunData, names: Sequence[str], axis: int, figure: Figure) -> None:
    axes = figure.subplots()
    prepare_panel(axes, axis)
    axes.set_ylabel(plain(axis_label(names[0]) if len(names) == 1 else _family(names[0])))
    if all(positive([run], name) for name in names):
        make_logarithmic(axes)
    for place, name in enumerate(names):
        look = style(place)
        curve = mean_curve([run], name)
        draw_line(axes, curve.along[axis], curve.mean, look | {"label": plain(axis_label(name))})
        if local_name(name) in run.curves:
            curve = mean_curve([run], local_name(name))
            draw_line(axes, curve.along[axis], curve.mean, {"color": look["color"], **DASHED})
    _legend(figure, axes, dashed=any(local_name(name) in run.curves for name in names))


def _legend(figure: Figure, axes: Axes, *, dashed: bool) -> None:
    from matplotlib.lines import Line2D

    handles, names = axes.get_legend_handles_labels()
    if dashed:
        handles.append(Line2D([], [], color="0.5", **DASHED))
        names.append("agents' own models")
    if len(names) > 1:
        figure.legend(
            handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=9
        )
