"""From settings to runs: one for every setting and seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.campaign.job import Job
from sundsbo_mpi.campaign.naming import place, run_name
from sundsbo_mpi.config.identity import identity
from sundsbo_mpi.config.methods import configured_weights, suited
from sundsbo_mpi.config.resolving import Config, Request, resolve, resolved
from sundsbo_mpi.config.settings import assignments, merge
from sundsbo_mpi.config.toml_text import value_text
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.sweep.reading import Sweep


@dataclass(frozen=True)
class Trial:
    """One value of everything that varies, and the runs with it."""

    stage: int
    settings: Mapping[str, Any]
    """Values by ``table.key``."""
    jobs: tuple[Job, ...] = ()
    """One for every seed, none where the configuration was refused."""
    wanted: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What its runs ask for over the defaults, by table."""
    refusal: str = ""


@dataclass(frozen=True)
class Planner:
    """Plans the runs of a sweep, whose files are all below ``directory``."""

    sweep: Sweep
    directory: Path

    def trial(self, stage: int, settings: Mapping[str, Any]) -> Trial:
        """Plan the runs with these settings, values by ``table.key``.

        Raises:
            UsageError: there is no topology, or it cannot be read.
        """
        options = self.sweep.options
        own = tuple(f"{name}={value_text(value)}" for name, value in settings.items())
        try:
            sets = (*self.sweep.sets(self._method(own)), *own)
            found = resolved(Request(sets=sets, preset=options.preset, file=options.config))
            suited(found.config, configured_weights(found.config.topology))
        except UsageError as error:
            return Trial(stage, settings, refusal=str(error))
        first = found.config.run.seed
        jobs = [self._job(found.config, sets, seed) for seed in range(first, first + options.seeds)]
        titled = [replace(job, title=f"{', '.join(own)}, {job.title}") for job in jobs]
        return Trial(stage, settings, tuple(titled), found.wanted())

    def _method(self, own: tuple[str, ...]) -> str:
        """Return the name of a trial's method, after which tables for methods are chosen."""
        over = assignments((*self.sweep.command, *own))
        named = merge({"algorithm": {"name": self._usual_method}}, self.sweep.tables, over)
        return str(named["algorithm"]["name"])

    @cached_property
    def _usual_method(self) -> str:
        """The method of all trials that name none."""
        options = self.sweep.options
        below = resolve(Request(preset=options.preset, file=options.config))
        return str(below.algorithm["name"])

    def _job(self, config: Config, sets: tuple[str, ...], seed: int) -> Job:
        config = replace(config, run=replace(config.run, seed=seed))
        weights = configured_weights(config.topology)
        path, checkpoint = place(self.directory, run_name(config, weights))
        every = (*sets, f"run.seed={seed}")
        words = [*self._base(), *(word for text in every for word in ("--set", text))]
        return Job(
            title=f"seed {seed}",
            agents=weights.agents,
            settings=(*words, "--overwrite"),
            path=path,
            checkpoint=checkpoint,
            wanted=identity(config.as_dict()),
        )

    def _base(self) -> list[str]:
        options = self.sweep.options
        named = (("--preset", options.preset), ("--config", options.config))
        return [word for flag, value in named if value is not None for word in (flag, value)]
