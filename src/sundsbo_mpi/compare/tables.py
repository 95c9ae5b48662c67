"""The comparison of runs as tables for people: a column per group of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from rich.console import Group as Parts
from rich.console import RenderableType
from rich.text import Text

from sundsbo_mpi.clock import PHASES
from sundsbo_mpi.compare.cost import BYTES as KINDS
from sundsbo_mpi.compare.cost import OUTSIDE, Cost, cost
from sundsbo_mpi.compare.differences import of_configuration, of_environment
from sundsbo_mpi.compare.groups import Group
from sundsbo_mpi.compare.quantities import BYTES, PLAIN, SECONDS, Units, line
from sundsbo_mpi.compare.scaling import Step, scaling
from sundsbo_mpi.compare.targets import Aim, last, reached
from sundsbo_mpi.metric_names import local_name
from sundsbo_mpi.pictures.figures import axis_label
from sundsbo_mpi.statistics import Spread, spread
from sundsbo_mpi.texttable import number, table

Rows: TypeAlias = Sequence[Sequence[str]]
"""Each a name and one text per group."""


def render(groups: Sequence[Group], aim: Aim | None, remarks: Sequence[str]) -> RenderableType:
    """Show what was compared, what an iteration cost, what was reached, and in what they differ."""
    costs = [[cost(run) for run in group.runs] for group in groups]
    numbers = ["", *(str(group.number) for group in groups)]
    told = [
        ("per iteration and agent (mean)", _sent(costs)),
        ("time of an iteration (mean of the agents)", _split(costs)),
    ]
    if aim is not None:
        told.append((_title(aim), _reached(groups, aim)))
    parts: list[RenderableType] = [_compared(groups)]
    parts += [table(numbers, lines, title=title) for title, lines in told]
    parts += [_scaled(steps) for steps in scaling(groups)]
    for title, differing in (
        ("configuration, where it differs", of_configuration(groups)),
        ("environment, where it differs", of_environment(groups)),
    ):
        if differing:
            lines = [(name, *values) for name, values in differing.items()]
            parts.append(table(numbers, lines, title=title, words=len(numbers)))
    return Parts(*parts, *warnings(remarks))


def warnings(remarks: Sequence[str]) -> list[Text]:
    """Return a paragraph for each remark."""
    return [Text(f"warning: {remark}") for remark in remarks]


def known(values: Iterable[float]) -> Spread:
    """Summarise the values that are known."""
    return spread(value for value in values if not math.isnan(value))


def _compared(groups: Sequence[Group]) -> RenderableType:
    def hosts(group: Group) -> set[str]:
        return set(group.first.agents_info["host"].tolist())

    lines = [
        (
            group.label,
            str(group.first.agent_count),
            str(len(hosts(group))),
            ", ".join(map(str, group.seeds)),
            "\n".join(str(run.path) for run in group.runs),
        )
        for group in groups
    ]
    return table(("", "agents", "hosts", "seeds", "files"), lines, title="compared", words=5)


def _sent(costs: Sequence[Sequence[Cost]]) -> Rows:
    return [
        _line("time", costs, lambda one: one.seconds, SECONDS),
        *(_line(f"{kind} bytes", costs, _of_kind(kind), BYTES) for kind in KINDS),
        _line("rounds", costs, lambda one: one.rounds),
        _line("messages", costs, lambda one: one.messages),
        _line("busiest / median agent", costs, lambda one: one.busiest),
    ]


def _split(costs: Sequence[Sequence[Cost]]) -> Rows:
    inside = [phase for phase in PHASES if phase != OUTSIDE]
    return [
        *(_line(phase, costs, _of_phase(phase), SECONDS) for phase in inside),
        _line("other", costs, lambda one: one.other, SECONDS),
        _line(f"{OUTSIDE}, beside it", costs, _of_phase(OUTSIDE), SECONDS),
        _line("slowest / median agent", costs, lambda one: one.slowest),
    ]


def _of_kind(kind: str) -> Callable[[Cost], float]:
    return lambda one: one.bytes[kind]


def _of_phase(phase: str) -> Callable[[Cost], float]:
    return lambda one: one.phases[phase]


def _line(
    name: str,
    costs: Sequence[Sequence[Cost]],
    measure: Callable[[Cost], float],
    units: Units = PLAIN,
) -> Sequence[str]:
    return line(name, [known(map(measure, of_group)) for of_group in costs], units)


def _title(aim: Aim) -> str:
    reach = "at least" if aim.way > 0 else "at most"
    return (
        f"{axis_label(aim.metric)}: at the end, and what it takes to {reach} {number(aim.target)}"
    )


def _reached(groups: Sequence[Group], aim: Aim) -> Rows:
    variables = dict.fromkeys(v for group in groups for run in group.runs for v in run.consensus)
    done = [[reached(run, aim) for run in group.runs] for group in groups]
    counts = [f"{sum(r is not None for r in of_group)} of {len(of_group)}" for of_group in done]

    def to(field: str) -> list[Spread]:
        return [known(getattr(r, field) for r in of_group if r) for of_group in done]

    def at_the_end(metric: str) -> list[Spread]:
        return [known(last(run, metric) for run in group.runs) for group in groups]

    return [
        line("averaged model", at_the_end(aim.metric)),
        line("agents' own models", at_the_end(local_name(aim.metric))),
        *(line(f"consensus {v}", at_the_end(f"consensus/{v}")) for v in variables),
        ("runs that reach it", *counts),
        line("iterations to it", to("iterations")),
        line("time to it", to("seconds"), SECONDS),
        line("sent per agent to it", to("bytes"), BYTES),
    ]


def _scaled(steps: Sequence[Step]) -> RenderableType:
    lines = [
        ("agents", *(str(step.agents) for step in steps)),
        line("time of an iteration", [known([step.seconds]) for step in steps], SECONDS),
        line("efficiency", [known([step.efficiency]) for step in steps]),
    ]
    numbers = ["", *(str(step.group.number) for step in steps)]
    title = "scaling with the number of agents (efficiency: time with the fewest agents / time)"
    return table(numbers, lines, title=title)
