"""The comparison of runs as CSV: a line per run, plain numbers in seconds and bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sundsbo_mpi.compare.cost import cost
from sundsbo_mpi.compare.differences import of_configuration, of_environment
from sundsbo_mpi.compare.groups import Group
from sundsbo_mpi.compare.scaling import scaling
from sundsbo_mpi.compare.targets import Aim, last, reached
from sundsbo_mpi.metric_names import local_name
from sundsbo_mpi.runfile import RunData
from sundsbo_mpi.texttable import DASH

SCALING = ("scaling_family", "efficiency")
"""Columns of groups that differ in the number of agents alone; of others they are empty."""


def lines(groups: Sequence[Group], aim: Aim | None) -> list[dict[str, Any]]:
    """Return what is known of every run; of the configuration and environment what differs."""
    differing = {**of_configuration(groups), **of_environment(groups)}
    grown = _scaling(groups)
    return [
        {"group": group.label}
        | _about(run)
        | _cost(run)
        | grown.get(group.number, dict.fromkeys(SCALING))
        | ({} if aim is None else _got(run, aim))
        | {name: values[place] for name, values in differing.items() if values[place] != DASH}
        for place, group in enumerate(groups)
        for run in group.runs
    ]


def _scaling(groups: Sequence[Group]) -> dict[int, dict[str, Any]]:
    """Return by its number of every group that scales: in which family, and its efficiency."""
    return {
        step.group.number: dict(zip(SCALING, (family, step.efficiency), strict=True))
        for family, steps in enumerate(scaling(groups), 1)
        for step in steps
    }


def _about(run: RunData) -> dict[str, Any]:
    about = run.attributes
    named = {name: about.get(name) for name in ("task", "dataset", "algorithm", "seed")}
    return {
        "file": run.path,
        "status": run.status,
        **named,
        "agents": run.agent_count,
        "hosts": len(set(run.agents_info["host"].tolist())),
        "iterations": int(run.iteration[-1]) if run.rows else 0,
    }


def _cost(run: RunData) -> dict[str, Any]:
    spent = cost(run)
    sent = {f"{kind}_bytes_per_iteration": value for kind, value in spent.bytes.items()}
    split = {f"{phase}_s_per_iteration": value for phase, value in spent.phases.items()}
    return {
        "s_per_iteration": spent.seconds,
        **sent,
        "rounds_per_iteration": spent.rounds,
        "messages_per_iteration": spent.messages,
        **split,
        "other_s_per_iteration": spent.other,
        "own_work_slowest_over_median": spent.slowest,
        "bytes_most_over_median": spent.busiest,
    }


def _got(run: RunData, aim: Aim) -> dict[str, Any]:
    got = reached(run, aim)
    to_target = dict.fromkeys(("iterations", "seconds", "bytes")) if got is None else got._asdict()
    return {
        "metric": aim.metric,
        "last": last(run, aim.metric),
        "last_local": last(run, local_name(aim.metric)),
        **{f"last_consensus_{v}": last(run, f"consensus/{v}") for v in run.consensus},
        "target": aim.target,
        **{f"{name}_to_target": value for name, value in to_target.items()},
    }
