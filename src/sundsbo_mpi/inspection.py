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


def inspect_private(tally: Tally, task: Task) -> None:
    """Check that the agents' private coordinates of x are a division of x, and only theirs.

    Raises:
        AgreedError: some coordinate is no agent's or several agents', or a loss of an agent depends
            on one that is not its own.
    """
    own = jointly(tally, lambda: _checked_private(task))
    blocks = sorted(tally.everyone((own.start, own.stop)))
    ends = [0, *(stop for _, stop in blocks)]
    if [start for start, _ in blocks] != ends[:-1] or ends[-1] != task.sizes["x"]:
        raise AgreedError(
            f"the agents' private coordinates of x are {blocks}: expected blocks that together "
            f"are 0 to {task.sizes['x']}, each coordinate in one of them."
        )


def _checked_private(task: Task) -> slice:
    """Return the agent's own block of x, after a look at the slopes of its losses at the start."""
    own = getattr(task, "private", None)
    if not isinstance(own, slice) or own.step is not None or None in (own.start, own.stop):
        raise UsageError(
            f"algorithm.private is true, but 'private' of the task is {own!r}: expected the slice "
            "of x that only the agent's data touch; leave it out, or take hyper-cleaning."
        )
    x, y = (v.detach().requires_grad_() for v in task.start())
    batch = task.sample(0)
    for name in LOSSES:
        value = getattr(task, name)(x, y, batch)
        (slope,) = torch.autograd.grad(value, x, allow_unused=True)
        if slope is not None and (slope[: own.start].any() or slope[own.stop :].any()):
            raise UsageError(
                f"algorithm.private is true, but {name}() of the task depends on coordinates of x "
                f"outside the agent's own, {own.start} to {own.stop}: leave it out, or correct "
                "'private' of the task."
            )
    return own


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
