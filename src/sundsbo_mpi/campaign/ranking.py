"""How settings compare: by the mean of one metric over the seeds, at the last evaluation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from sundsbo_mpi.campaign.running import finished_run, why_lacking
from sundsbo_mpi.metric_names import local_name
from sundsbo_mpi.statistics import Spread, spread

if TYPE_CHECKING:
    from sundsbo_mpi.campaign.job import Job
    from sundsbo_mpi.runfile import RunData


class Tried(Protocol):
    """A setting that is tried."""

    @property
    def jobs(self) -> Sequence[Job]:
        """Its runs."""
        ...


T = TypeVar("T", bound=Tried)


class Result(NamedTuple, Generic[T]):
    """What a setting reached at the last evaluation of its runs."""

    trial: T
    metric: Spread
    local: Spread
    """The same averaged over the agents' own iterates, NaN where it was not measured."""
    trouble: str
    """Why the setting does not count, if so."""


def result(trial: T, metric: str) -> Result[T]:
    """Read what a setting reached; it counts if all its runs are finished and the mean finite."""
    looked = [(job, finished_run(job)) for job in trial.jobs]
    runs = [run for _, run in looked if run is not None]
    found, trouble = _last(runs, metric), ""
    if lacking := [job for job, run in looked if run is None]:
        trouble = f"{len(lacking)} of {len(trial.jobs)} runs lacking, {why_lacking(lacking[0])}"
    elif not math.isfinite(found.mean):
        trouble = f"{metric} is not finite"
    return Result(trial, found, _last(runs, local_name(metric)), trouble)


def best_first(results: Sequence[Result[T]], *, maximise: bool) -> list[Result[T]]:
    """Sort results; equal ones, and those that do not count, which come last, keep their order."""
    sign = -1 if maximise else 1
    return sorted(results, key=lambda r: math.inf if r.trouble else sign * r.metric.mean)


def _last(runs: Sequence[RunData], metric: str) -> Spread:
    """Summarise the metric at the last evaluation of every run, NaN where it was not measured."""
    return spread(
        float(run.curves[metric][-1]) if metric in run.curves else math.nan for run in runs
    )
