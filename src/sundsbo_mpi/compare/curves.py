"""Runs as a picture: a row for every metric; panels for iterations, seconds and bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.metric_names import local_name
from sundsbo_mpi.pictures.figures import (
    DASHED,
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sundsbo_mpi.compare.groups import Group

LEGEND_COLUMNS = 3


def draw_groups(groups: Sequence[Group], metrics: Sequence[str], output: Path) -> None:
    """Draw the metrics, which all runs have, and save the picture.

    The axes are iterations, seconds of training, and payload bytes that an agent has sent on
    average.  A curve is the mean over the seeds of a group, as far as all of them have come, its
    band the standard deviation; a dashed line beside it the mean over the agents' own models.

    Raises:
        UsageError: matplotlib is missing, or the picture cannot be saved.
    """
    runs = [run for group in groups for run in group.runs]
    legend = 0.25 * (1 + len(groups) // LEGEND_COLUMNS)
    figure = new_figure(figsize=(11, 0.9 + legend + 3.05 * len(metrics)), layout="constrained")
    grid = figure.subplots(len(metrics), 3, sharex="col", sharey="row", squeeze=False)
    for panels, name in zip(grid, metrics, strict=True):
        prepare(panels)
        panels[0].set_ylabel(plain(axis_label(name)))
        if positive(runs, name):
            make_logarithmic(panels[0])
        for place, (group, label) in enumerate(zip(groups, labels(groups), strict=True)):
            _draw(panels, group, name, {"label": plain(label), **style(place)})
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    _legend(figure, grid[0][0], groups, metrics)
    save_picture(figure, output)


def labels(groups: Sequence[Group]) -> list[str]:
    """Name each group by its algorithm and what sets it apart, and by how many seeds it has.

    Where that is too much to read, or nothing, the first file's name is taken.
    """
    names = [group.name for group in groups]
    if len(set(names)) < len(groups):
        first = [group.first for group in groups]
        names = [f"{run.attributes.get('algorithm', 'run')} ({run.path.stem})" for run in first]
    seeds = [f", {len(group.runs)} seeds" * (len(group.runs) > 1) for group in groups]
    return [name + said for name, said in zip(names, seeds, strict=True)]


def _draw(panels: Sequence[Axes], group: Group, name: str, look: dict[str, Any]) -> None:
    draw_mean(panels, mean_curve(group.runs, name), look)
    local = local_name(name)
    if all(local in run.curves for run in group.runs):
        curve = mean_curve(group.runs, local)._replace(std=None)
        draw_mean(panels, curve, {"color": look["color"], **DASHED})


def _legend(figure: Figure, axes: Axes, groups: Sequence[Group], metrics: Sequence[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles, names = axes.get_legend_handles_labels()
    runs = [run for group in groups for run in group.runs]
    if any(local_name(name) in run.curves for name in metrics for run in runs):
        handles.append(Line2D([], [], color="0.4", **DASHED))
        names.append("dashed: mean of the agents' own models")
    if len(runs) > len(groups):
        handles.append(Patch(color="0.4", alpha=0.15, linewidth=0))
        names.append("band: standard deviation over seeds")
    columns = min(len(names), LEGEND_COLUMNS)
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False)
