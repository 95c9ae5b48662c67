"""The scaling with the number of agents as a picture: the time of an iteration, and efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sundsbo_mpi.pictures.figures import DASHED, style
from sundsbo_mpi.pictures.labels import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sundsbo_mpi.compare.scaling import Step


def draw_scaling(panels: Sequence[Axes], families: Sequence[Sequence[Step]]) -> None:
    """Draw seconds and efficiency against agents into two panels.

    Every group is a point; a line joins the fastest groups of each number of agents of a family.

    Args:
        panels: For the seconds, in ms, and for the efficiency.
        families: What ``scaling`` returns.
    """
    for place, steps in enumerate(families):
        known = [step for step in steps if step.seconds > 0]
        fastest = {step.agents: step for step in sorted(known, key=lambda s: -s.seconds)}
        joined = [fastest[agents] for agents in sorted(fastest)]
        look = style(place)
        for axes, value in zip(panels, (_milliseconds, _efficiency), strict=True):
            points = {**look, "linestyle": "none"}
            axes.plot([s.agents for s in known], [value(s) for s in known], **points)
            line = {**look, "marker": "none", "label": _label(steps)}
            axes.plot([s.agents for s in joined], [value(s) for s in joined], **line)
    counts = sorted({step.agents for steps in families for step in steps})
    for axes, label in zip(panels, ("ms per iteration", "efficiency"), strict=True):
        _finish(axes, counts, label)
    panels[1].axhline(1, color="0.4", **DASHED)


def _milliseconds(step: Step) -> float:
    return 1000 * step.seconds


def _efficiency(step: Step) -> float:
    return step.efficiency


def _label(steps: Sequence[Step]) -> str:
    """Name the method, and the groups by their numbers."""
    numbers = ", ".join(str(step.group.number) for step in steps)
    return plain(f"{numbers} {steps[0].group.first.attributes.get('algorithm', '')}")


def _finish(axes: Axes, counts: Sequence[int], label: str) -> None:
    """Give a panel its words and a tick for every number of agents."""
    axes.set_xscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set_xlabel("agents")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
