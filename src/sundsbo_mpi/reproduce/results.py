"""What the finished runs of an experiment reached, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.campaign.running import finished_run, why_lacking

if TYPE_CHECKING:
    from sundsbo_mpi.reproduce.plan import Job
    from sundsbo_mpi.runfile import RunData


@dataclass(frozen=True)
class Cell:
    """The runs of one method under one condition, and why the others are missing, by seed."""

    method: str
    condition: str
    runs: Mapping[int, RunData]
    troubles: Mapping[int, str]

    def at(self, metric: str, iteration: int) -> dict[int, float]:
        """Return the metric at an iteration by seed, of the runs that evaluated it there."""
        found = {}
        for seed, run in self.runs.items():
            rows = np.flatnonzero(run.iteration == iteration)
            if rows.size and metric in run.curves:
                found[seed] = float(run.curves[metric][rows[0]])
        return found

    def last(self, metric: str) -> dict[int, float]:
        """Return the metric at the last evaluation by seed."""
        curves = {seed: run.curves.get(metric) for seed, run in self.runs.items()}
        return {seed: float(curve[-1]) for seed, curve in curves.items() if curve is not None}

    @property
    def seconds(self) -> dict[int, float]:
        """Seconds of training by seed."""
        return {seed: float(run.elapsed_s[-1]) for seed, run in self.runs.items()}

    @property
    def bytes_sent(self) -> dict[int, float]:
        """Payload bytes that an agent has sent on average, by seed."""
        sent = {seed: run.agents["bytes_payload"] for seed, run in self.runs.items()}
        return {seed: float(counted[-1].mean()) for seed, counted in sent.items()}

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables whose consensus was measured."""
        return tuple(dict.fromkeys(v for run in self.runs.values() for v in run.consensus))


def collect(planned: Iterable[Job]) -> list[Cell]:
    """Read the finished runs; cells come in the order of the plan."""
    runs: dict[tuple[str, str], dict[int, RunData]] = {}
    troubles: dict[tuple[str, str], dict[int, str]] = {}
    for job in planned:
        key = (job.condition, job.method)
        runs.setdefault(key, {})
        troubles.setdefault(key, {})
        if not job.refusal and (run := finished_run(job)):
            runs[key][job.seed] = run
        else:
            troubles[key][job.seed] = why_lacking(job)
    return [
        Cell(method, condition, of_cell, troubles[condition, method])
        for (condition, method), of_cell in runs.items()
    ]
