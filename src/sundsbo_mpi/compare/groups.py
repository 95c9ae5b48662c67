"""Which of the runs given are seeds of one configuration in one environment."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sundsbo_mpi.compare.environment import environment
from sundsbo_mpi.pictures.labels import short_labels
from sundsbo_mpi.runfile import RunData
from sundsbo_mpi.statistics import Spread, spread

NOT_OF_THE_PROBLEM = {"run": ("seed",), "task": ("data_dir",), "topology": ("file",)}
"""Keys of the configuration that do not set runs apart; of a topology its content does."""

HOW_LONG = ("iterations", "eval_every", "max_walltime")


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seed alone; ``number`` counts the groups from 1."""

    number: int
    name: str
    runs: Sequence[RunData]

    @property
    def label(self) -> str:
        """Number and name."""
        return f"{self.number} {self.name}"

    @property
    def first(self) -> RunData:
        """The run that stands for what all runs of the group have in common."""
        return self.runs[0]

    @property
    def seeds(self) -> tuple[Any, ...]:
        """The seeds of the runs, in their order; None where a file does not say."""
        return tuple(run.attributes.get("seed") for run in self.runs)

    def spread(self, measure: Callable[[RunData], float | None]) -> Spread:
        """Return mean and deviation of a measure over the runs that have it (not None)."""
        found = [measure(run) for run in self.runs]
        return spread(value for value in found if value is not None)


def group(runs: Sequence[RunData]) -> list[Group]:
    """Put together the runs that differ in their seed alone, in the order given.

    Configuration (but for the seed, where the data lie, what is written), weights, MPI library,
    versions, devices, threads, agents per host and the names of the hosts without their numbers
    are the same in a group.  A seed that comes again opens the next group: two clusters may look
    the same.
    """
    found: dict[tuple[str, int], list[RunData]] = {}
    times: dict[tuple[str, Any], int] = {}
    for run in runs:
        kind = alike(run)
        seed = run.attributes.get("seed")
        turn = times[kind, seed] = times.get((kind, seed), -1) + 1
        found.setdefault((kind, turn), []).append(run)
    members = list(found.values())
    names = _names([of_group[0] for of_group in members])
    return [
        Group(number, name, of_group)
        for number, (name, of_group) in enumerate(zip(names, members, strict=True), 1)
    ]


def apart(runs: Sequence[RunData]) -> list[Group]:
    """Make a group of every run, whatever its seed, which may be part of its name."""
    seeds = [{"seed": run.config.get("run", {}).get("seed")} for run in runs]
    alone = [
        replace(_for_label(run), config={**_for_label(run).config, "run": seed})
        for run, seed in zip(runs, seeds, strict=True)
    ]
    names = zip(short_labels(alone), runs, strict=True)
    return [Group(number, name, [run]) for number, (name, run) in enumerate(names, 1)]


def configuration(run: RunData) -> dict[str, Any]:
    """Return the tables of the configuration without what does not set runs apart."""
    return {
        table: {k: v for k, v in values.items() if k not in NOT_OF_THE_PROBLEM.get(table, ())}
        for table, values in run.config.items()
        if table != "output" and isinstance(values, Mapping)
    }


def weights_of(run: RunData) -> str:
    """Identify the weights by their content, or by their description where a file lacks it."""
    about = run.attributes
    return str(about.get("topology_sha256", about.get("topology", "")))


def scales_with(run: RunData) -> str:
    """Identify what two runs must share if they differ in the number of agents alone."""
    config = configuration(run)
    of_run = {k: v for k, v in config.get("run", {}).items() if k not in HOW_LONG}
    facts = environment(run)
    place = [facts.get(name) for name in ("MPI library", "transport", "devices")]
    return json.dumps([{**config, "run": of_run}, _stems(run), place], sort_keys=True)


def alike(run: RunData) -> str:
    """Identify what runs must share that differ in their seed alone."""
    facts = {name: value for name, value in environment(run).items() if name != "hosts"}
    return json.dumps([configuration(run), weights_of(run), facts, _stems(run)], sort_keys=True)


def _stems(run: RunData) -> list[str]:
    return sorted({re.sub(r"\d+", "#", host) for host in run.agents_info["host"].tolist()})


def _names(runs: Sequence[RunData]) -> list[str]:
    """Name the algorithms and what sets them apart, the host where that is not enough."""
    names = short_labels([_for_label(run) for run in runs])
    hosts = [run.agents_info["host"].tolist()[0] for run in runs]
    if len(set(names)) == len(runs) or len(set(hosts)) == 1:
        return names
    return [f"{name} on {host}" for name, host in zip(names, hosts, strict=True)]


def _for_label(run: RunData) -> RunData:
    """Let the number of agents and the topology's name count in place of the file that is read."""
    config = configuration(run)
    about = {"agents": run.agent_count, "W": str(run.attributes.get("topology", "–"))}
    return replace(run, config={**config, "topology": {**config.get("topology", {}), **about}})
