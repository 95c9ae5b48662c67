"""The figures of an experiment: mean curves over iterations, seconds and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.pictures.figures import (
    axis_label,
    make_logarithmic,
    new_figure,
    positive,
    prepare,
    save_picture,
    style,
)
from sundsbo_mpi.pictures.mean_curves import draw_mean, mean_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sundsbo_mpi.reproduce.paper import Experiment
    from sundsbo_mpi.reproduce.results import Cell
    from sundsbo_mpi.runfile import RunData

HOLLOW: dict[str, Any] = {
    "linestyle": "none",
    "linewidth": 1.5,
    "markerfacecolor": "none",
    "markersize": 6,
    "alpha": 0.6,
}
"""What the paper prints, around the marker of ours."""


def draw(experiment: Experiment, cells: Sequence[Cell], output: Path) -> bool:
    """Draw a row of three panels for every condition and metric; say whether there was anything.

    A line is the mean over seeds, its band the standard deviation; bars are what the paper prints.

    Raises:
        UsageError: matplotlib is missing, or the picture cannot be saved.
    """
    shown = [cell for cell in cells if cell.runs]
    conditions = dict.fromkeys(cell.condition for cell in shown)
    rows = [(condition, metric) for condition in conditions for metric in experiment.metrics]
    if not rows:
        return False
    figure = new_figure(figsize=(11, 0.8 + 3.2 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), 3, sharey="row", squeeze=False)
    for panels, (condition, metric) in zip(grid, rows, strict=True):
        prepare(panels)
        panels[0].set_ylabel(axis_label(metric))
        panels[0].set_title(condition, loc="left")
        here = [cell for cell in shown if cell.condition == condition]
        measured = [run for cell in here for run in _measured(cell, metric)]
        if measured and positive(measured, metric):
            make_logarithmic(panels[0])
        for number, method in enumerate(experiment.methods):
            for cell in here:
                if cell.method == method:
                    _draw(panels, cell, metric, number)
                    _draw_printed(panels[0], experiment, cell, number)
    _legend(figure, grid[0][0], printed=bool(experiment.printed))
    save_picture(figure, output)
    return True


def _legend(figure: Figure, axes: Axes, *, printed: bool) -> None:
    handles, names = axes.get_legend_handles_labels()
    if printed:
        from matplotlib.lines import Line2D

        handles.append(Line2D([], [], **style(0) | HOLLOW | {"color": "0.4"}))
        names.append("hollow: printed in the paper")
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)


def _draw(panels: Sequence[Axes], cell: Cell, metric: str, number: int) -> None:
    if runs := _measured(cell, metric):
        draw_mean(panels, mean_curve(runs, metric), style(number) | {"label": cell.method})


def _measured(cell: Cell, metric: str) -> list[RunData]:
    return [run for run in cell.runs.values() if metric in run.curves]


def _draw_printed(axes: Axes, experiment: Experiment, cell: Cell, number: int) -> None:
    row = experiment.printed.get((cell.method, cell.condition))
    if row is None or row.no_target:
        return
    look = style(number) | HOLLOW
    last = max(int(run.iteration[-1]) for run in cell.runs.values())
    places = [place for place, k in enumerate(experiment.printed_at) if k <= last]
    if places:
        at = [experiment.printed_at[place] for place in places]
        errors = [row.std[place] for place in places] if row.std else None
        axes.errorbar(at, [row.mean[place] for place in places], yerr=errors, capsize=2, **look)
