"""The comparison of runs as a picture: the metric along three axes, the time split, the scaling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.clock import PHASES
from sundsbo_mpi.compare.cost import cost
from sundsbo_mpi.compare.scaling import scaling
from sundsbo_mpi.compare.scaling_picture import draw_scaling
from sundsbo_mpi.pictures.figures import (
    axis_label,
    make_logarithmic,
    new_figure,
    positive,
    prepare,
    save_picture,
    style,
)
from sundsbo_mpi.pictures.labels import plain
from sundsbo_mpi.pictures.mean_curves import draw_mean, mean_curve
from sundsbo_mpi.pictures.phase_bars import draw_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

    from sundsbo_mpi.compare.groups import Group
    from sundsbo_mpi.compare.targets import Aim


def draw(groups: Sequence[Group], aim: Aim | None, output: Path) -> None:
    """Draw the groups and save the picture.

    A curve is the mean over the seeds, as far as all of them have come, its band the standard
    deviation; a dashed line is the target.  A bar is an iteration, split into the phases.  The time
    of groups that differ in the number of agents alone is drawn against that.

    Raises:
        UsageError: matplotlib is missing, or the picture cannot be saved.
    """
    legend = 0.25 * (2 + len(groups))
    families = scaling(groups)
    heights = {"split": 1.2 + 0.42 * len(groups)}
    if aim is not None:
        heights = {"curves": 3.6 + legend, **heights}
    if families:
        heights["scaling"] = 3.0 + 0.25 * len(families)
    figure = new_figure(figsize=(11, sum(heights.values())), layout="constrained")
    found = figure.subfigures(len(heights), 1, height_ratios=list(heights.values()), squeeze=False)
    parts: dict[str, SubFigure] = dict(zip(heights, found.ravel(), strict=True))
    if aim is not None:
        panels = parts["curves"].subplots(1, 3, sharey=True)
        _curves(panels, groups, aim)
        _name_lines(parts["curves"], panels[0])
    _split(parts["split"].subplots(), groups)
    if families:
        panels = parts["scaling"].subplots(1, 2)
        draw_scaling(panels, families)
        _name_lines(parts["scaling"], panels[0])
    save_picture(figure, output)


def _name_lines(part: SubFigure, axes: Axes) -> None:
    """Say below a part of the picture what the lines of its panels are."""
    handles, names = axes.get_legend_handles_labels()
    part.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)


def _curves(panels: Sequence[Axes], groups: Sequence[Group], aim: Aim) -> None:
    prepare(panels)
    panels[0].set_ylabel(plain(axis_label(aim.metric)))
    runs = [run for group in groups for run in group.runs if aim.metric in run.curves]
    if positive(runs, aim.metric):
        make_logarithmic(panels[0])
    for axes in panels:
        axes.axhline(aim.target, color="0.4", linewidth=1, linestyle="--")
    for place, group in enumerate(groups):
        _draw(panels, group, aim.metric, place)


def _draw(panels: Sequence[Axes], group: Group, metric: str, place: int) -> None:
    runs = [run for run in group.runs if run.rows and metric in run.curves]
    if runs:
        draw_mean(panels, mean_curve(runs, metric), style(place) | {"label": plain(group.label)})


def _split(axes: Axes, groups: Sequence[Group]) -> None:
    """Stack the seconds of the phases, in ms, the first group on top."""
    costs = [[cost(run) for run in group.runs] for group in groups]
    parts = {name: [[one.phases[name] for one in c] for c in costs] for name in PHASES}
    parts["other"] = [[max(one.other, 0.0) for one in c] for c in costs]
    means = {name: np.array([np.mean(c) for c in of_groups]) for name, of_groups in parts.items()}
    draw_bars(axes, means, [plain(group.label) for group in groups])
    axes.set_xlabel("ms per iteration (mean of the agents), evaluation included")
    if axes.patches:
        axes.figure.legend(loc="outside upper center", ncols=len(parts), frameon=False)
