"""Which of the settings of a sweep is best, by a metric that its runs must have measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from sundsbo_mpi.campaign import ranking
from sundsbo_mpi.campaign.running import finished_run
from sundsbo_mpi.errors import unknown
from sundsbo_mpi.sweep.planning import Trial
from sundsbo_mpi.sweep.reading import HELD_BACK, words

if TYPE_CHECKING:
    from sundsbo_mpi.runfile import RunData
    from sundsbo_mpi.sweep.reading import SweepOptions

Result: TypeAlias = ranking.Result[Trial]


def ranked(trials: Sequence[Trial], options: SweepOptions) -> list[Result]:
    """Return the results, the best first; those that do not count come last, in the order tried.

    Raises:
        UsageError: a finished run has no such metric.
    """
    results = [_result(trial, options.metric) for trial in trials]
    return ranking.best_first(results, maximise=options.maximise)


def require_metric(run: RunData, metric: str) -> None:
    """Refuse a metric that a run has not measured.

    Raises:
        UsageError: it has not.
    """
    if metric not in run.curves:
        allowed = [name for name in run.curves if HELD_BACK not in words(name)]
        raise unknown("sweep.metric", metric, allowed)


def _result(trial: Trial, metric: str) -> Result:
    found = ranking.result(trial, metric)
    if math.isnan(found.metric.mean):  # as it is where a run lacks the metric
        for run in filter(None, map(finished_run, trial.jobs)):
            require_metric(run, metric)
    return found._replace(trouble=trial.refusal) if trial.refusal else found
