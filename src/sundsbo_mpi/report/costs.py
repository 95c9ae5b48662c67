"""Where the time of the agents went."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.compare.cost import own_work, split
from sundsbo_mpi.pictures.phase_bars import draw_bars
from sundsbo_mpi.report.inline import inline
from sundsbo_mpi.texttable import seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from markupsafe import Markup
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from sundsbo_mpi.runfile import RunData

DRAWN_UP_TO = 40
"""Agents; of more, some are picked from the one with the most work to that with the least."""


def time_split(run: RunData) -> Markup | None:
    """Draw what an iteration of every agent takes, by phase; None if that was not measured."""
    spent = split(run)
    if not spent:
        return None
    picked = _picked(run)
    shown = {phase: own[picked] for phase, own in spent.items()}
    labels = [f"agent {agent}" for agent in picked]
    means = ", ".join(f"{phase} {seconds(float(own.mean()))}" for phase, own in spent.items())
    told = f"Time of an iteration by phase, mean of the agents: {means}."
    height = 1.3 + 0.28 * len(picked)
    return inline(partial(_draw, shown, labels), (5.4, height), told)


def _picked(run: RunData) -> NDArray[np.int64]:
    agents = run.agent_count
    if agents <= DRAWN_UP_TO:
        return np.arange(agents)
    order = np.argsort(-own_work(run), kind="stable")
    picked: NDArray[np.int64] = order[np.linspace(0, agents - 1, DRAWN_UP_TO).round().astype(int)]
    return picked


def _draw(spent: Mapping[str, NDArray[np.float64]], labels: list[str], figure: Figure) -> None:
    axes = figure.subplots()
    draw_bars(axes, spent, labels)
    axes.set_xlabel("ms per iteration, evaluation included")
    if axes.patches:
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
