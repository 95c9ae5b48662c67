"""Which settings are tried: a first stage, coarse, and then finer ones around the best so far."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.config.toml_text import value_text
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.sweep.axes import Axis, Choice
from sundsbo_mpi.sweep.ranking import Result, ranked

if TYPE_CHECKING:
    from sundsbo_mpi.campaign.job import Job
    from sundsbo_mpi.sweep.planning import Planner, Trial
    from sundsbo_mpi.sweep.reading import Sweep

MOST_SETTINGS = 10_000
"""In a stage; more are a slip."""


def search(planner: Planner, perform: Callable[[int, Sequence[Job]], bool]) -> list[Result] | None:
    """Try all stages; return the results, the best first, or None where runs are still to come.

    Args:
        planner: What plans the runs.
        perform: Does the runs of a stage, given its number; says whether no more are to come.

    Raises:
        UsageError: a stage has too many settings, or all settings of the first one were refused.
    """
    sweep = planner.sweep
    axes = sweep.axes
    trials: list[Trial] = []
    for stage in range(1 + sweep.options.finer):
        tried = {_key(trial.settings) for trial in trials}
        fresh = {_key(values): values for values in settings(sweep, axes, stage)}
        now = [planner.trial(stage, v) for key, v in fresh.items() if key not in tried]
        if stage == 0 and now and all(trial.refusal for trial in now):
            raise UsageError(now[0].refusal)
        trials += now
        # Seed after seed, so that all settings get their first run early.
        planned = [trial.jobs for trial in now if trial.jobs]
        jobs = [job for of_seed in zip(*planned, strict=True) for job in of_seed]
        if not perform(stage, jobs):
            return None
        results = ranked(trials, sweep.options)
        if results[0].trouble:
            break
        axes = _finer(sweep, results, stage + 1)
    return results


def _finer(sweep: Sweep, results: Sequence[Result], stage: int) -> dict[str, Axis]:
    """Return the values of a stage: finer ones around the best, or the best alone."""
    best = results[0].trial.settings
    tried = {name: [r.trial.settings[name] for r in results] for name in sweep.axes}
    return {
        name: known.around(best[name], tried[name], stage)
        if name in sweep.refine
        else Choice((best[name],))
        for name, known in sweep.axes.items()
    }


def settings(sweep: Sweep, axes: Mapping[str, Axis], stage: int) -> Iterable[dict[str, Any]]:
    """Return the values by ``table.key`` of every setting of a stage.

    Raises:
        UsageError: there are too many.
    """
    grid = sweep.options.search == "grid"
    count = math.prod(len(a.grid()) for a in axes.values()) if grid else sweep.options.samples
    if count > MOST_SETTINGS:
        raise UsageError(
            f"the sweep has {count:,} settings, expected at most {MOST_SETTINGS:,}: leave values "
            "out, or draw some with search = 'random'."
        )
    if grid:
        product = itertools.product(*(known.grid() for known in axes.values()))
        return [dict(zip(axes, values, strict=True)) for values in product]
    rng = np.random.default_rng([sweep.options.random_seed, stage])
    return [{name: known.draw(rng) for name, known in axes.items()} for _ in range(count)]


def at_the_end(sweep: Sweep, best: Mapping[str, Any]) -> list[str]:
    """Return the settings whose best value is the smallest or largest that was asked for."""
    return [name for name, known in sweep.axes.items() if known.ends_with(best[name])]


def _key(values: Mapping[str, Any]) -> str:
    return value_text(values)
