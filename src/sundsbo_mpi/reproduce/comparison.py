"""Ours beside the paper's, cell by cell, and the methods beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sundsbo_mpi.statistics import Interval, Spread, deviations, paired, spread

if TYPE_CHECKING:
    from sundsbo_mpi.reproduce.paper import Experiment
    from sundsbo_mpi.reproduce.results import Cell

REFERENCE = "sun-dsbo-gt"
MOST_COLUMNS = 5


@dataclass(frozen=True)
class Entry:
    """One number of a table: ours and the paper's; what the paper does not print is NaN."""

    experiment: str
    condition: str
    method: str
    metric: str
    iteration: int
    ours: Spread
    paper_mean: float
    paper_std: float

    @property
    def difference(self) -> float:
        """Ours minus the paper's."""
        return self.ours.mean - self.paper_mean

    @property
    def deviations(self) -> float:
        """The difference in units of the paper's standard deviation."""
        return deviations(self.ours.mean, self.paper_mean, self.paper_std)


@dataclass(frozen=True)
class Contest:
    """The reference method minus another one at the last evaluation, seed by seed."""

    condition: str
    metric: str
    reference: str
    method: str
    interval: Interval


def columns(experiment: Experiment, cells: Sequence[Cell]) -> tuple[int, ...]:
    """Return the iterations to show: the printed ones that were evaluated, or a few of ours."""
    evaluated = sorted({int(k) for c in cells for run in c.runs.values() for k in run.iteration})
    printed = [k for k in experiment.printed_at if k in evaluated]
    if printed or len(evaluated) <= 1:
        return tuple(printed or experiment.printed_at or evaluated)
    ours = evaluated[1:]
    every = math.ceil(len(ours) / MOST_COLUMNS)
    return tuple(ours[::-1][::every][::-1])


def entries(experiment: Experiment, cells: Sequence[Cell]) -> list[Entry]:
    """Compare every cell at the iterations of ``columns``."""
    found = []
    for metric in experiment.metrics:
        for cell in cells:
            row = experiment.printed.get((cell.method, cell.condition))
            for k in columns(experiment, cells):
                mean = std = math.nan
                if row is not None and not row.no_target and k in experiment.printed_at:
                    place = experiment.printed_at.index(k)
                    mean = row.mean[place]
                    std = row.std[place] if row.std else math.nan
                ours = spread(cell.at(metric, k).values())
                where = (experiment.name, cell.condition, cell.method, metric, k)
                found.append(Entry(*where, ours, mean, std))
    return found


def contests(experiment: Experiment, cells: Sequence[Cell]) -> list[Contest]:
    """Compare SUN-DSBO-GT, or the first method, with every other one under each condition."""
    found = []
    for condition in dict.fromkeys(cell.condition for cell in cells):
        here = {cell.method: cell for cell in cells if cell.condition == condition}
        reference = REFERENCE if REFERENCE in here else next(iter(here))
        for metric in experiment.metrics:
            for method, cell in here.items():
                if method != reference:
                    interval = paired(here[reference].last(metric), cell.last(metric))
                    found.append(Contest(condition, metric, reference, method, interval))
    return found
