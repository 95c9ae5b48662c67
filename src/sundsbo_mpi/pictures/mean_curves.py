"""Curves of several runs as one: their mean and deviation, along three axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sundsbo_mpi.runfile import RunData
    from sundsbo_mpi.runfile.schema import Array


class MeanCurve(NamedTuple):
    """A metric at the e evaluations that all runs have; every array has shape (e,).

    ``along`` are iterations, seconds of training, and the payload bytes that an agent has sent on
    average; ``std`` is the sample standard deviation, None for a single run.
    """

    along: tuple[Array, Array, Array]
    mean: Array
    std: Array | None


def mean_curve(runs: Sequence[RunData], metric: str) -> MeanCurve:
    """Average a metric over runs that all have it, seconds and bytes too."""
    common = reduce(np.intersect1d, [run.iteration for run in runs])
    rows = [np.isin(run.iteration, common) for run in runs]

    def everyones(columns: Sequence[Array]) -> Array:
        return np.array([column[kept] for column, kept in zip(columns, rows, strict=True)])

    values = everyones([run.curves[metric] for run in runs])
    sent = everyones([run.agents["bytes_payload"].mean(axis=1) for run in runs])
    along = (common, everyones([run.elapsed_s for run in runs]).mean(axis=0), sent.mean(axis=0))
    std = values.std(axis=0, ddof=1) if len(runs) > 1 else None
    return MeanCurve(along, values.mean(axis=0), std)


def draw_line(axes: Axes, along: Array, values: Array, look: Mapping[str, Any]) -> None:
    """Draw a curve with few markers; a logarithmic axis has no place for what is not positive."""
    if axes.get_yscale() == "log":
        values = np.where(values > 0, values, np.nan)
    axes.plot(along, values, markevery=max(len(values) // 12, 1), **look)


def draw_mean(panels: Sequence[Axes], curve: MeanCurve, look: Mapping[str, Any]) -> None:
    """Draw the mean, with a band of one deviation, into three panels, one for each axis."""
    for axes, along in zip(panels, curve.along, strict=True):
        draw_line(axes, along, curve.mean, look)
        if curve.std is not None:
            ends = (curve.mean - curve.std, curve.mean + curve.std)
            axes.fill_between(along, *ends, color=look["color"], alpha=0.15, linewidth=0)
