"""Checks of ``sample``, a pure function of k and draw, and of what differs between agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.taskcheck.contents import contents, fingerprint
from sundsbo_mpi.taskcheck.findings import Said, absent, passed, remark

if TYPE_CHECKING:
    from sundsbo_mpi.taskcheck.bench import Bench
    from sundsbo_mpi.tasks.base import Task

CALLS = tuple((k, draw) for k in (0, 1, 7) for draw in (0, 1))
"""(k, draw) of the batches that are compared."""


def sample(bench: Bench) -> Said:
    """``sample`` returns the same for the same k and draw, also in another order and process."""
    for agent, task in enumerate(bench.tasks):
        drawn = _drawn(task, CALLS)
        others = {"called again": _drawn(task, CALLS[::-1])}
        if agent == bench.agents - 1:
            rebuilt = _drawn(bench.build(agent, torch.float64), CALLS[::-1])
            others["of a task that is built again"] = rebuilt
        for how, again in others.items():
            for (k, draw), mark in drawn.items():
                if again[k, draw] != mark:
                    raise UsageError(
                        f"sample({k}, {draw}) of agent {agent} returns another batch when {how}: "
                        "draw from a generator made anew from the seed, the agent, k and draw "
                        "(torch.Generator().manual_seed(...)), not from one that goes on."
                    )
        _require_plain(agent, task)
    return _judged(bench)


def _drawn(task: Task, calls: tuple[tuple[int, int], ...]) -> dict[tuple[int, int], str]:
    return {(k, draw): fingerprint(task.sample(k, draw)) for k, draw in calls}


def _require_plain(agent: int, task: Task) -> None:
    for path, piece in contents(task.sample(0)):
        if isinstance(piece, torch.Tensor) and piece.requires_grad:
            raise UsageError(
                f"sample(0) of agent {agent} has a tensor that requires gradients (batch{path}): "
                "return data alone, .detach()ed."
            )


def _judged(bench: Bench) -> Said:
    """Say in what the batches do not differ, which is right for exact gradients alone."""
    drawn = _drawn(bench.tasks[0], CALLS)
    if len(set(drawn.values())) == 1:
        return remark("the same batch for every k and draw: the gradients are exact")
    if all(drawn[k, 0] == drawn[k, 1] for k, _ in CALLS):
        return remark("'draw' changes nothing: methods with several batches use one for all")
    return passed("repeatable, and different between k and draws")


def agents(bench: Bench) -> Said:
    """The agents' losses differ, as their data should."""
    if bench.agents == 1:
        return absent("there is one agent; --agents 4 compares some")
    x, y = bench.point()
    losses = [
        (float(task.upper(x, y, batch)), float(task.lower(x, y, batch)))
        for task in bench.tasks
        for batch in [task.sample(0)]
    ]
    if len(set(losses)) == 1:
        return remark("all agents have equal losses: their data do not depend on 'agent'")
    return passed("their losses differ")
