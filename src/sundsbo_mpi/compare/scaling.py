"""How the time of an iteration grows with the number of agents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from sundsbo_mpi.compare.cost import cost
from sundsbo_mpi.compare.groups import Group, scales_with


class Step(NamedTuple):
    """A group among those that differ in the number of agents alone.

    ``efficiency`` = seconds per iteration with the fewest agents / seconds per iteration: 1 where
    more agents, each with the same work, take no longer.
    """

    group: Group
    agents: int
    seconds: float
    efficiency: float


def scaling(groups: Sequence[Group]) -> list[list[Step]]:
    """Return the families of groups that differ in the number of agents, each by that number.

    A family has the same configuration (but for the topology and the length of the run), MPI
    library, transport, devices and names of hosts without their numbers.  Of several groups with
    the fewest agents, the fastest is the measure.
    """
    families: dict[str, list[Group]] = {}
    for group in groups:
        families.setdefault(scales_with(group.first), []).append(group)
    grown = [f for f in families.values() if len({g.first.agent_count for g in f}) > 1]
    return [_steps(family) for family in grown]


def _steps(family: Sequence[Group]) -> list[Step]:
    timed = [(g, g.first.agent_count, g.spread(lambda run: cost(run).seconds).mean) for g in family]
    fewest = min(agents for _, agents, _ in timed)
    known = [s for _, agents, s in timed if agents == fewest and not math.isnan(s)]
    base = min(known, default=math.nan)
    ordered = sorted(timed, key=lambda step: step[1])
    return [Step(g, agents, s, base / s if s > 0 else math.nan) for g, agents, s in ordered]
