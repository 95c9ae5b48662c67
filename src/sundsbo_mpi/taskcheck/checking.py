"""The checks in their order, and which of them need which others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch

from sundsbo_mpi.options import require_integer
from sundsbo_mpi.taskcheck import batches, costs, forms, gradients, purity
from sundsbo_mpi.taskcheck.bench import Bench, precision
from sundsbo_mpi.taskcheck.findings import Finding, Said, Verdict, found

MOST_AGENTS = 1_000
"""All of them are built in one process."""


class Check(NamedTuple):
    """One line of the table."""

    what: str
    do: Callable[[Bench], Said]
    needs: tuple[str, ...] = ()
    """The lines without which this one means nothing."""


LOSSES = ("sample", "upper", "lower")

CHECKS = (
    Check("options", forms.options),
    Check("shards", forms.shards, ("options",)),
    Check("constructor", forms.constructor, ("shards",)),
    Check("sizes", forms.sizes, ("constructor",)),
    Check("start", forms.start, ("sizes",)),
    Check("equal starts", forms.equal_starts, ("start",)),
    Check("sample", batches.sample, ("start",)),
    Check("upper", partial(gradients.loss, "upper"), ("start",)),
    Check("lower", partial(gradients.loss, "lower"), ("start",)),
    Check("twice", gradients.twice, LOSSES),
    Check("agents", batches.agents, LOSSES),
    Check("saddle", gradients.saddle, LOSSES),
    Check("single_level", gradients.single_level, ("sample",)),
    Check("private", gradients.private, LOSSES),
    Check("everything", gradients.everything, LOSSES),
    Check("reference", forms.reference, ("start",)),
    Check("report", forms.report, ("start",)),
    Check("arguments", purity.arguments, (*LOSSES, "report")),
    Check("graphs", purity.graphs, (*LOSSES, "report")),
    Check("to", costs.to, LOSSES),
    Check("dtype", costs.own_precision, LOSSES),
    Check("time", costs.speed, ("dtype", "report")),
    Check("memory", costs.space, ("dtype",)),
)


def check_task(name: str, agents: int, sets: Sequence[str] = ()) -> list[Finding]:
    """Check a task as the agents of a run would have it, in one process.

    Args:
        name: A built-in task, ``path/to/file.py:Class`` or ``package.module:Class``.
        agents: Number of agents.
        sets: Settings, such as ``task.batch=10``.

    Raises:
        UsageError: ``agents`` is no number that can be built.
    """
    require_integer("--agents", agents, 1, MOST_AGENTS)
    bench, findings = Bench(name, agents, tuple(sets)), []
    blamed: dict[str, str] = {}
    with precision(torch.float64):
        for what, do, needs in CHECKS:
            if lacks := [blamed[need] for need in needs if need in blamed]:
                blamed[what] = lacks[0]
                findings.append(
                    Finding(what, Verdict.SKIPPED, f"not checked, since {lacks[0]} failed")
                )
                continue
            findings.append(found(what, partial(do, bench)))
            if findings[-1].verdict is Verdict.FAIL:
                blamed[what] = what
    return findings
