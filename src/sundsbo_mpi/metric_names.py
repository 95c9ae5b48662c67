"""What the names of metrics say, and which of the metrics that runs have are looked at."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.errors import UsageError, unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sundsbo_mpi.runfile import RunData

LOCAL = "_local"
"""Ends the name of a task's metric that is averaged over the agents' own iterates."""
LOWER = ("loss", "error", "distance", "stationarity", "residual", "consensus")
HIGHER = ("accuracy", "auc", "gap")
"""Words in names of metrics of which less, and more, is better."""


def direction(metric: str) -> int:
    """Return 1 where more is better, -1 where less is, and 0 where neither is known."""
    if any(word in metric for word in LOWER):
        return -1
    return int(any(word in metric for word in HIGHER))


def local_name(metric: str) -> str:
    """Name what a metric of the averaged iterate is at the agents' own iterates."""
    return f"{metric}{LOCAL}"


def without_local(metrics: Collection[str]) -> list[str]:
    """Return the metrics but for those at the agents' own iterates of others among them."""
    beside = {local_name(name) for name in metrics}
    return [name for name in metrics if name not in beside]


def choose_metric(runs: Sequence[RunData], wanted: str | None) -> str:
    """Return the metric to look at: the ``wanted`` one, or accuracy, or an error, or a loss.

    Raises:
        UsageError: A run has no rows, or not all runs have the metric.
    """
    shared = shared_metrics(runs)
    if wanted is not None:
        if wanted not in shared:
            raise unknown("metric of all these runs", wanted, shared)
        return wanted
    of_task = [name for name in shared if name in runs[0].task and not name.endswith(LOCAL)]
    for word in ("accuracy", "error", "loss", ""):
        for name in of_task:
            if word in name:
                return name
    raise UsageError("these runs have no task metric in common: name one with --metric.")


def choose_metrics(runs: Sequence[RunData], wanted: Sequence[str]) -> list[str]:
    """Return the metrics to look at: those named, or that match a pattern such as consensus/*.

    The mean over the agents' own models stands beside that of the averaged model, so that no
    pattern takes it; without any wish there is one metric, that of ``choose_metric``.

    Raises:
        UsageError: A run has no rows, or not all runs have a metric.
    """
    if not wanted:
        return [choose_metric(runs, None)]
    averaged = without_local(shared_metrics(runs))
    chosen: list[str] = []
    for word in wanted:
        chosen += fnmatch.filter(averaged, word) or [choose_metric(runs, word)]
    return list(dict.fromkeys(chosen))


def shared_metrics(runs: Sequence[RunData]) -> list[str]:
    """Name the metrics of which every run has numbers.

    Raises:
        UsageError: A run has no rows.
    """
    for run in runs:
        if not run.rows:
            raise UsageError(f"'{run.path}' has no evaluation yet: wait for its first row.")
    return [name for name in runs[0].curves if all(_known(run, name) for run in runs)]


def _known(run: RunData, name: str) -> bool:
    return name in run.curves and bool(np.isfinite(run.curves[name]).any())
