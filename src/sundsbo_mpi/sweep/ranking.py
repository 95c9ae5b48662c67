"""How settings compare: by the mean of one validation metric over the seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sundsbo_mpi.campaign.running import finished_run, reason
from sundsbo_mpi.errors import unknown
from sundsbo_mpi.statistics import Spread, spread
from sundsbo_mpi.sweep.reading import HELD_BACK, words

if TYPE_CHECKING:
    from sundsbo_mpi.runfile import RunData
    from sundsbo_mpi.sweep.planning import Trial
    from sundsbo_mpi.sweep.reading import SweepOptions

LOCAL = "_local"
"""Ends the name of a metric that is averaged over the agents' own iterates."""


class Result(NamedTuple):
    """What a setting reached at the last evaluation of its runs."""

    trial: Trial
    metric: Spread
    local: Spread
    """The same averaged over the agents' own iterates, where it was measured."""
    trouble: str
    """Why the setting does not count, if so."""


def ranked(trials: Sequence[Trial], options: SweepOptions) -> list[Result]:
    """Return the results, the best first; those that do not count come last, in the order tried.

    Raises:
        UsageError: a finished run has no such metric.
    """
    results = [_result(trial, options.metric) for trial in trials]
    sign = -1 if options.maximise else 1
    return sorted(results, key=lambda r: math.inf if r.trouble else sign * r.metric.mean)


def require_metric(run: RunData, metric: str) -> None:
    """Refuse a metric that a run has not measured.

    Raises:
        UsageError: it has not.
    """
    if metric not in run.curves:
        allowed = [name for name in run.curves if HELD_BACK not in words(name)]
        raise unknown("sweep.metric", metric, allowed)


def _result(trial: Trial, metric: str) -> Result:
    looked = [(job, finished_run(job)) for job in trial.jobs]
    runs = [run for _, run in looked if run is not None]
    for run in runs:
        require_metric(run, metric)
    found, local = _last(runs, metric), _last(runs, f"{metric}{LOCAL}")
    trouble = trial.refusal
    if lacking := [job for job, run in looked if run is None]:
        trouble = f"{len(lacking)} of {len(trial.jobs)} runs lacking, {reason(lacking[0])}"
    elif not trouble and not math.isfinite(found.mean):
        trouble = f"{metric} is not finite"
    return Result(trial, found, local, trouble)


def _last(runs: Sequence[RunData], metric: str) -> Spread:
    """Summarise the metric at the last evaluation of every run that has it."""
    return spread(float(run.curves[metric][-1]) for run in runs if metric in run.curves)
