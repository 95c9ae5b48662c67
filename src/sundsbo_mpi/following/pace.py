"""How fast a run goes, how long it will take, and whether it has fallen silent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.compare.cost import own_work
from sundsbo_mpi.summary import age

if TYPE_CHECKING:
    from sundsbo_mpi.runfile import RunData

RECENT = 5
"""Evaluations that tell of the pace."""
LATE = 3.0
"""How many times the usual interval may pass before a run is said to be silent ..."""
LATE_SECONDS = 30.0
"""... and how many seconds at least."""


@dataclass(frozen=True)
class Pace:
    """What the last evaluations tell; NaN where there are too few.

    ``seconds`` per iteration and ``left`` to the end, evaluation included; ``interval`` between two
    evaluations; ``silent`` if the file has not been written for much longer.
    """

    done: int
    iterations: int | None
    seconds: float
    left: float
    interval: float
    silent: bool


def pace(run: RunData) -> Pace:
    """Estimate from the last evaluations how the run goes on."""
    done = int(run.iteration[-1]) if run.rows else 0
    planned = run.attributes.get("iterations")
    iterations = planned if isinstance(planned, int) else None
    first = max(run.rows - 1 - RECENT, 0)
    steps = done - int(run.iteration[first]) if run.rows else 0
    passed = float(run.wall_s[-1] - run.wall_s[first]) if run.rows else 0.0
    seconds = passed / steps if steps > 0 else math.nan
    interval = passed / (run.rows - 1 - first) if steps > 0 else math.nan
    since = age(run)
    left = math.nan if iterations is None else max((iterations - done) * seconds - since, 0.0)
    late = max(LATE_SECONDS, 0.0 if math.isnan(interval) else LATE * interval)
    running = run.status == "running"
    left = left if running else 0.0
    return Pace(done, iterations, seconds, left, interval, running and since > late)


def slowest_agent(run: RunData) -> tuple[int, float] | None:
    """Return the agent with the most work of its own and how many times the median's it has.

    None where the phases were not measured.
    """
    own = own_work(run)
    median = float(np.median(own))
    if not median > 0:
        return None
    agent = int(own.argmax())
    return agent, float(own[agent]) / median
