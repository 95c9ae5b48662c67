"""In what the groups differ: their configurations, and what they ran on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sundsbo_mpi.compare.environment import environment
from sundsbo_mpi.compare.groups import Group, configuration, weights_of
from sundsbo_mpi.pictures.labels import flatten
from sundsbo_mpi.runfile import RunData
from sundsbo_mpi.texttable import DASH

UNSET = "null"
Differences = Mapping[str, Sequence[str]]
"""The values of the groups, in their order, by what differs."""


def of_configuration(groups: Sequence[Group]) -> Differences:
    """Return the keys of the configuration in which the groups differ."""
    return _differing(groups, _settings)


def of_environment(groups: Sequence[Group]) -> Differences:
    """Return the facts about hosts, libraries and versions in which the groups differ."""
    return _differing(groups, environment)


def _settings(run: RunData) -> dict[str, str]:
    """Return the configuration, a topology by its name and what tells it from its namesakes."""
    name = run.attributes.get("topology", DASH)
    told = {"agents": str(run.agent_count), "topology": f"{name} ({weights_of(run)[:8]})"}
    settings = flatten(configuration(run))
    return told | {key: value for key, value in settings.items() if value != UNSET}


def _differing(
    groups: Sequence[Group], facts: Callable[[RunData], Mapping[str, str]]
) -> Differences:
    found = [[facts(run) for run in group.runs] for group in groups]
    names = dict.fromkeys(name for of_group in found for of_run in of_group for name in of_run)
    values = {
        name: [
            "; ".join(dict.fromkeys(of_run.get(name, DASH) for of_run in of_group))
            for of_group in found
        ]
        for name in names
    }
    return {name: of_groups for name, of_groups in values.items() if len(set(of_groups)) > 1}
