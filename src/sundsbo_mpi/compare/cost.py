"""What an iteration of a run costs: seconds, bytes, and where the seconds go."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.clock import PHASES
from sundsbo_mpi.runfile.schema import COSTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sundsbo_mpi.runfile import RunData

BYTES = tuple(n.removeprefix("bytes_") for n in COSTS if n.startswith("bytes_"))
OUTSIDE = "evaluation"
"""The phase that is no part of the seconds of training."""
NOT_OWN = ("wait", OUTSIDE)
"""Phases in which an agent waits for others, or in which all do the same."""


@dataclass(frozen=True)
class Cost:
    """Per iteration; NaN where fewer than two evaluations count or the file lacks the series.

    ``seconds`` of training, on rank 0; ``bytes``, ``phases`` (seconds), ``rounds`` and ``messages``
    are means over the agents.  ``other`` is what the phases leave of ``seconds``.  ``slowest`` is
    the largest, over the median, of the agents' own seconds (all phases but waiting and
    evaluation), ``busiest`` likewise of their payload bytes.
    """

    seconds: float
    bytes: Mapping[str, float]
    phases: Mapping[str, float]
    other: float
    rounds: float
    messages: float
    slowest: float
    busiest: float


def cost(run: RunData) -> Cost:
    """Measure a run from its first evaluation to its last: what comes before both is start-up."""
    spent = {name: _per_iteration(run, counted) for name, counted in run.agents.items()}
    missing = np.full(run.agent_count, math.nan)
    known = split(run)
    training = sum(float(own.mean()) for name, own in known.items() if name != OUTSIDE)
    seconds = float(_per_iteration(run, run.elapsed_s))
    payload = spent.get("bytes_payload", missing)
    return Cost(
        seconds=seconds,
        bytes={name: float(spent.get(f"bytes_{name}", missing).mean()) for name in BYTES},
        phases={name: float(known.get(name, missing).mean()) for name in PHASES},
        other=seconds - training,
        rounds=float(spent.get("rounds", missing).mean()),
        messages=float(spent.get("messages", missing).mean()),
        slowest=_uneven(own_work(run)),
        busiest=_uneven(payload),
    )


def split(run: RunData) -> dict[str, NDArray[Any]]:
    """Return the seconds of every phase per iteration, (n,), those that the file lacks left out."""
    spent = {
        phase: _per_iteration(run, run.agents[f"seconds_{phase}"])
        for phase in PHASES
        if f"seconds_{phase}" in run.agents
    }
    return {phase: own for phase, own in spent.items() if not np.isnan(own).all()}


def own_work(run: RunData) -> NDArray[Any]:
    """Return the agents' own seconds per iteration, (n,): all phases but waiting and evaluation."""
    own = [spent for phase, spent in split(run).items() if phase not in NOT_OWN]
    return np.sum(own, axis=0) if own else np.full(run.agent_count, math.nan)


def _per_iteration(run: RunData, series: NDArray[Any]) -> NDArray[Any]:
    """Divide what was added between the first and the last evaluation by the iterations between."""
    done = int(run.iteration[-1] - run.iteration[0]) if run.rows else 0
    if done <= 0:
        return np.full(series.shape[1:], math.nan)
    rate: NDArray[Any] = np.asarray((series[-1] - series[0]) / done)
    return rate


def _uneven(values: NDArray[Any]) -> float:
    """Return the largest over the median; NaN where the median is not above 0."""
    median = float(np.median(values))
    return float(values.max()) / median if median > 0 else math.nan
