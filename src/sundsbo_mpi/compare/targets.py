"""How much a run takes to get as far as another: iterations, seconds and bytes to a target."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.metric_names import choose_metric, direction
from sundsbo_mpi.runfile import RunData

WAYS = {"higher": 1, "lower": -1}


class Wish(NamedTuple):
    """What the user wants to be reached; None where it is to be chosen.  ``better`` is in WAYS."""

    metric: str | None = None
    target: float | None = None
    better: str | None = None


@dataclass(frozen=True)
class Aim:
    """A value of a metric to be reached from below (``way`` 1) or from above (-1)."""

    metric: str
    way: int
    target: float


class Reached(NamedTuple):
    """What a run had spent at the first evaluation at which it had reached the target.

    ``seconds`` are of training, ``bytes`` the payload that an agent has sent on average.
    """

    iterations: float
    seconds: float
    bytes: float


def choose_aim(runs: Sequence[RunData], wish: Wish) -> Aim | None:
    """Return what the runs are to reach; None where nothing was asked for and nothing is known.

    The metric is the one named, or that which ``metric_names.choose_metric`` takes of the runs that
    have been evaluated; the target the one given, or the worst of the last values of the finished
    runs (of all runs, if none has finished), so that every one of those reaches it.

    Raises:
        UsageError: Not all runs have the metric, the target is no finite number, or there is a
            target and it is not known which way is better.
    """
    metric, target, better = wish
    if target is not None and not math.isfinite(target):
        raise UsageError(f"the target is {target}: expected a finite number, as in --target 80.")
    asked = wish != Wish()
    evaluated = [run for run in runs if run.rows]
    try:
        name = choose_metric(evaluated or runs, metric)
    except UsageError:
        if asked:
            raise
        return None
    way = WAYS[better] if better else direction(name)
    if not way:
        if not asked:
            return None
        raise UsageError(
            f"it is not known whether more or less of '{name}' is better: add --better higher or "
            "--better lower."
        )
    if target is None:
        ended = [run for run in evaluated if run.status == "finished"]
        target = way * min(way * last(run, name) for run in ended or evaluated)
    return Aim(name, way, target)


def last(run: RunData, metric: str) -> float:
    """Return the last finite value of a metric; NaN where there is none."""
    curve = run.curves.get(metric, np.empty(0))
    finite = curve[np.isfinite(curve)]
    return float(finite[-1]) if finite.size else math.nan


def reached(run: RunData, aim: Aim) -> Reached | None:
    """Return what the run had spent when it reached the target; None if it never did."""
    curve = run.curves.get(aim.metric, np.empty(0))
    rows = np.flatnonzero(aim.way * curve >= aim.way * aim.target)
    if not rows.size:
        return None
    row = rows[0]
    sent = run.agents.get("bytes_payload")
    return Reached(
        float(run.iteration[row]),
        float(run.elapsed_s[row]),
        math.nan if sent is None else float(sent[row].mean()),
    )
