"""What the agents hold: how many samples, and of which classes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.pictures.figures import draw_table
from sundsbo_mpi.report.inline import inline
from sundsbo_mpi.runfile.schema import LABEL_COUNTS
from sundsbo_mpi.summary import Lines

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from sundsbo_mpi.runfile import RunData

PARTS = {"train": "training", "validation": "validation"}
WRITTEN_UP_TO = 25
"""Agents and classes whose counts stand in the picture."""
BLACK = "#000001"
"""Whatever the colour of the page's text, which is that of what is plainly black."""
LISTED_UP_TO = 200
"""Agents that have a row of their own."""


def histograms(run: RunData) -> list[tuple[str, Markup]]:
    """Draw the numbers of samples by agent and class, for training and for validation samples."""
    found = []
    for name in LABEL_COUNTS:
        counts = run.agents_info.get(name)
        if counts is None or not counts.size:
            continue
        part = PARTS[name.partition("_")[0]]
        told = (
            f"Numbers of {part} samples by agent and class, {counts.min()} to {counts.max()}; the "
            "table of agents has them in figures."
        )
        height = min(0.9 + 0.3 * len(counts), 6.5)
        width = min(max(1.6 + 0.42 * counts.shape[1], 3.6), 7.5)
        picture = inline(partial(_draw, counts), (width, height), told)
        found.append((f"{part} samples", picture))
    return found


def agents_table(run: RunData) -> Lines:
    """Return where every agent ran and what it held, the first ones where there are many."""
    info = run.agents_info
    columns: dict[str, Any] = {"agent": range(run.agent_count)}
    columns |= {name: info[name].tolist() for name in ("host", "device", "threads")}
    held = {part: info[f"{part}_samples"] for part in ("train", "validation")}
    if any(counts.any() for counts in held.values()):  # else the task does not tell
        columns |= {PARTS[part]: counts.tolist() for part, counts in held.items()}
    counts = info.get(LABEL_COUNTS[0])
    if counts is not None:
        columns["training samples by class"] = [", ".join(map(str, own)) for own in counts.tolist()]
    rows = list(zip(*columns.values(), strict=True))[:LISTED_UP_TO]
    return Lines(tuple(columns), [tuple(map(str, row)) for row in rows])


def _draw(counts: NDArray[np.int64], figure: Figure) -> None:
    axes = figure.subplots()
    image = draw_table(axes, counts.astype(float), "class", "agent")
    if max(counts.shape) > WRITTEN_UP_TO:
        figure.colorbar(image, ax=axes, label="samples")
        return
    bright = np.asarray(image.to_rgba(counts))[..., :3] @ (0.299, 0.587, 0.114) > 0.5
    for (agent, label), count in np.ndenumerate(counts):
        colour = BLACK if bright[agent, label] else "white"
        axes.text(label, agent, str(count), ha="center", va="center", fontsize=9, color=colour)
