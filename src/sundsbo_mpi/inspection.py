"""Is a task what it must be?  Checked once, before the agents are connected; all is collective."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sundsbo_mpi.agreement import agree, jointly
from sundsbo_mpi.errors import AgreedError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.tasks.base import Task

LOSSES = ("upper", "lower")


def construct(task_class: Callable[..., Task], given: Mapping[str, Any]) -> Task:
    """Build a task, unless its constructor does not take what a run gives; local.

    Raises:
        UsageError: it does not.
    """
    try:
        inspect.signature(task_class).bind(**given)
    except TypeError as error:
        raise UsageError(
            f"the task cannot be built: {error}; its __init__ must take agent, agents, seed and "
            "its options by keyword."
        ) from None
    return task_class(**given)


def inspect_task(tally: Tally, task: Task, device: torch.device, dtype: torch.dtype) -> None:
    """Check sizes, start and losses of every agent's task, and that the agents agree on them.

    Raises:
        AgreedError: something is not as ``tasks.base.Task`` says.
    """
    jointly(tally, lambda: _check_sizes(task))
    start = jointly(tally, lambda: _checked_start(task, device, dtype))
    facts = {"the task's sizes": dict(task.sizes), "the task's start (SHA-256)": _digest(start)}
    agree(tally, facts, "sizes and start() must be equal on all agents")
    depends = jointly(tally, lambda: _checked_losses(task, start))
    for name, agents in zip(LOSSES, tally.total(np.array(depends)), strict=True):
        if agents == 0:
            raise AgreedError(
                f"{name}() of the task depends on neither x nor y on any agent: look for an "
                ".item(), .detach() or torch.no_grad() in it."
            )


def _check_sizes(task: Task) -> None:
    sizes = getattr(task, "sizes", None)
    if (
        not isinstance(sizes, Mapping)
        or set(sizes) != {"x", "y"}
        or not all(isinstance(d, int) and d > 0 for d in sizes.values())
    ):
        raise UsageError(
            f"the task's sizes are {sizes!r}: expected {{'x': d_x, 'y': d_y}}, integers above 0."
        )


def _checked_start(task: Task, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    start = task.start()
    if not (isinstance(start, tuple) and len(start) == 2):
        raise UsageError(f"start() of the task returns {type(start).__name__}: expected (x, y).")
    for name, v in zip(("x", "y"), start, strict=True):
        expected = f"shape ({task.sizes[name]},), {dtype} on {device.type}"
        found = (
            f"shape {(*v.shape,)}, {v.dtype} on {v.device.type}"
            if isinstance(v, torch.Tensor)
            else type(v).__name__
        )
        if found != expected:
            raise UsageError(f"start() of the task has {name} with {found}: expected {expected}.")
        if v.requires_grad or not v.isfinite().all():
            raise UsageError(
                f"start() of the task has {name} that requires gradients or is not finite: "
                "return plain finite numbers."
            )
    return start


def _digest(start: tuple[Tensor, Tensor]) -> str:
    return hashlib.sha256(b"".join(v.numpy(force=True).tobytes() for v in start)).hexdigest()


def _checked_losses(task: Task, start: tuple[Tensor, Tensor]) -> list[bool]:
    """Return whether each of the losses depends on x or y at the start."""
    x, y = (v.detach().requires_grad_() for v in start)
    batch = task.sample(0)
    depends = []
    for name in LOSSES:
        value = getattr(task, name)(x, y, batch)
        if not isinstance(value, torch.Tensor) or value.shape != ():
            found = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
            raise UsageError(f"{name}() of the task returns {found}: expected a scalar tensor.")
        depends.append(value.requires_grad)
    return depends
