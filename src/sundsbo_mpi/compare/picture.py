"""The comparison of runs as a picture: the metric along three axes, and the time split as bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.clock import PHASES
from sundsbo_mpi.compare.cost import cost
from sundsbo_mpi.figures import (
    COLOURS,
    axis_label,
    new_figure,
    positive,
    prepare,
    save_picture,
    style,
)
from sundsbo_mpi.texttable import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sundsbo_mpi.compare.groups import Group
    from sundsbo_mpi.compare.targets import Aim

OTHER = "0.8"
"""Grey, for what no phase accounts for."""


def draw(groups: Sequence[Group], aim: Aim | None, output: Path) -> None:
    """Draw the groups and save the picture.

    A curve is the mean over the seeds, as far as all of them have come, its band the standard
    deviation; a dashed line is the target.  A bar is an iteration, split into the phases.

    Raises:
        UsageError: matplotlib is missing, or the picture cannot be saved.
    """
    bars = 1.2 + 0.42 * len(groups)
    legend = 0.25 * (2 + len(groups))
    figure = new_figure(
        figsize=(11, bars + (3.6 + legend) * (aim is not None)), layout="constrained"
    )
    if aim is None:
        _split(figure.subplots(), groups)
    else:
        halves: Any = figure.subfigures(2, 1, height_ratios=(3.6 + legend, bars))
        above, below = halves
        panels = above.subplots(1, 3, sharey=True)
        _curves(panels, groups, aim)
        handles, names = panels[0].get_legend_handles_labels()
        above.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
        _split(below.subplots(), groups)
    save_picture(figure, output)


def _curves(panels: Sequence[Axes], groups: Sequence[Group], aim: Aim) -> None:
    prepare(panels)
    panels[0].set_ylabel(axis_label(aim.metric))
    runs = [run for group in groups for run in group.runs if aim.metric in run.curves]
    if positive(runs, aim.metric):
        panels[0].set_yscale("log")
    for axes in panels:
        axes.axhline(aim.target, color="0.4", linewidth=1, linestyle="--")
    for place, group in enumerate(groups):
        _draw(panels, group, aim.metric, place)


def _draw(panels: Sequence[Axes], group: Group, metric: str, place: int) -> None:
    runs = [run for run in group.runs if metric in run.curves]
    rows = min((run.rows for run in runs), default=0)
    if not rows:
        return
    curves = np.array([run.curves[metric][:rows] for run in runs])
    along = (
        runs[0].iteration[:rows],
        np.mean([run.elapsed_s[:rows] for run in runs], axis=0),
        np.mean([run.agents["bytes_payload"][:rows].mean(axis=1) for run in runs], axis=0),
    )
    mean = curves.mean(axis=0)
    look = style(place) | {"label": group.label, "markevery": max(rows // 12, 1)}
    for axes, ticks in zip(panels, along, strict=True):
        axes.plot(ticks, mean, **look)
        if len(runs) > 1:
            std = curves.std(axis=0, ddof=1)
            axes.fill_between(ticks, mean - std, mean + std, color=look["color"], alpha=0.15)


def _split(axes: Axes, groups: Sequence[Group]) -> None:
    """Stack the seconds of the phases, in ms, the first group on top."""
    costs = [[cost(run) for run in group.runs] for group in groups]
    places = np.arange(len(groups))
    ends = np.zeros(len(groups))
    colours = dict(zip(PHASES, COLOURS, strict=False))
    parts = {name: [[one.phases[name] for one in c] for c in costs] for name in PHASES}
    parts["other"] = [[max(one.other, 0.0) for one in c] for c in costs]
    for name, values in parts.items():
        width = 1000 * np.array([np.nan_to_num(np.mean(of_group)) for of_group in values])
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
    axes.set_yticks(places, [group.label for group in groups])
    axes.invert_yaxis()
    axes.set_xlabel("ms per iteration (mean of the agents), evaluation included")
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.08)
    if ends.any():
        axes.figure.legend(loc="outside upper center", ncols=len(parts), frameon=False)
