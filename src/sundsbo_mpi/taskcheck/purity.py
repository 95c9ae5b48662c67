"""Checks that a task leaves alone what it is handed, and keeps no graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from sundsbo_mpi.composition.directions import leaf
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.running.inspection import LOSSES
from sundsbo_mpi.taskcheck.contents import contents, fingerprint
from sundsbo_mpi.taskcheck.findings import Said, passed
from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.taskcheck.bench import Bench
    from sundsbo_mpi.tasks.base import Task


def arguments(bench: Bench) -> Said:
    """Nothing that is handed to a task is changed."""
    for agent, task in bench.ends:
        batch, (x, y) = task.sample(0), bench.point()
        handed = {"x": x, "y": y, "the batch": batch}
        for name, call in _calls(task, x, y, batch).items():
            before = {what: fingerprint(held) for what, held in handed.items()}
            call()
            for what, held in handed.items():
                if fingerprint(held) != before[what]:
                    raise UsageError(
                        f"{name}() of agent {agent} changes {what}, which others go on using: "
                        "leave out in-place operations (names that end in _, +=), or copy first."
                    )
    return passed("nothing handed over is changed")


def graphs(bench: Bench) -> Said:
    """No graph outlives the call that it was made in."""
    for agent, _ in bench.ends:
        task = bench.build(agent, torch.float64)  # one that keeps nothing from other checks
        x, y = map(leaf, bench.point())
        batch = task.sample(0)
        for name in (*LOSSES, "report"):
            _calls(task, x, y, batch)[name]()
            for what, held in (("the task", task), ("the batch", batch)):
                for path, piece in contents(held):
                    if isinstance(piece, torch.Tensor) and piece.grad_fn is not None:
                        raise UsageError(
                            f"{what} of agent {agent} keeps a tensor with its graph ({path}) after "
                            f"{name}(): keep .detach()ed copies, or memory grows."
                        )
    return passed("none is kept")


def _calls(task: Task, x: Tensor, y: Tensor, batch: Any) -> dict[str, Callable[[], object]]:
    calls: dict[str, Callable[[], object]] = {
        "upper": lambda: task.upper(x, y, batch),
        "lower": lambda: task.lower(x, y, batch),
        "report": lambda: task.report(x.detach(), y.detach()),
    }
    if hasattr(task, "saddle"):
        calls["saddle"] = lambda: task.saddle(x, y, y.clone(), batch, Penalty(0.7, 0.9))
    return calls
