"""Is a task what it must be?  Checked once, before the agents are connected.

``inspect_task`` and ``inspect_private`` are collective; the rest looks at one agent's task, as
``sundsbo-mpi task check`` does as well.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sundsbo_mpi.comm.agreement import agree, jointly
from sundsbo_mpi.errors import UsageError

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
    jointly(tally, lambda: check_sizes(task))
    start = jointly(tally, lambda: checked_start(task, device, dtype))
    facts = {"the task's sizes": dict(task.sizes), "the task's start (SHA-256)": digest(start)}
    agree(tally, facts, "sizes and start() must be equal on all agents")
    depends = jointly(tally, lambda: checked_losses(task, start))
    for name, agents in zip(LOSSES, tally.total(np.array(depends)), strict=True):
        jointly(tally, partial(require_dependence, name, agents=int(agents)))


def require_dependence(name: str, *, agents: int) -> None:
    """Check that a loss depends on x or y on some agents.

    Raises:
        UsageError: it does on none.
    """
    if agents == 0:
        raise UsageError(
            f"{name}() of the task depends on neither x nor y on any agent: look for an "
            ".item(), .detach() or torch.no_grad() in it."
        )


def inspect_private(tally: Tally, task: Task) -> None:
    """Check that the agents' private coordinates of x are a division of x, and only theirs.

    Raises:
        AgreedError: some coordinate is no agent's or several agents', or a loss of an agent depends
            on one that is not its own.
    """
    own = jointly(tally, lambda: private_block(task))
    blocks = tally.everyone((own.start, own.stop))
    jointly(tally, lambda: require_division(blocks, task.sizes["x"]))


def require_division(blocks: Sequence[tuple[int, int]], d_x: int) -> None:
    """Check that the agents' blocks of x, (start, stop) each, together are x, none of it twice.

    Raises:
        UsageError: they are not.
    """
    ordered = sorted(blocks)
    ends = [0, *(stop for _, stop in ordered)]
    if [start for start, _ in ordered] != ends[:-1] or ends[-1] != d_x:
        raise UsageError(
            f"the agents' private coordinates of x are {ordered}: expected blocks that together "
            f"are 0 to {d_x}, each coordinate in one of them."
        )


def private_block(task: Task) -> slice:
    """Return the agent's own block of x, after a look at the slopes of its losses at the start.

    Raises:
        UsageError: ``private`` is no block of x, or a loss depends on x outside it.
    """
    own = getattr(task, "private", None)
    if not isinstance(own, slice) or own.step is not None or None in (own.start, own.stop):
        raise UsageError(
            f"'private' of the task is {own!r}: expected the slice of x that only the agent's data "
            "touch; leave algorithm.private out, or take hyper-cleaning."
        )
    x, y = (v.detach().requires_grad_() for v in task.start())
    batch = task.sample(0)
    for name in LOSSES:
        value = getattr(task, name)(x, y, batch)
        (slope,) = torch.autograd.grad(value, x, allow_unused=True)
        if slope is not None and (slope[: own.start].any() or slope[own.stop :].any()):
            raise UsageError(
                f"{name}() of the task depends on coordinates of x outside the agent's own, "
                f"{own.start} to {own.stop}: correct 'private' of the task, or leave "
                "algorithm.private out."
            )
    return own


def check_sizes(task: Task) -> None:
    """Check that ``sizes`` names two lengths.

    Raises:
        UsageError: it does not.
    """
    sizes = getattr(task, "sizes", None)
    if (
        not isinstance(sizes, Mapping)
        or set(sizes) != {"x", "y"}
        or not all(isinstance(d, int) and d > 0 for d in sizes.values())
    ):
        raise UsageError(
            f"the task's sizes are {sizes!r}: expected {{'x': d_x, 'y': d_y}}, integers above 0."
        )


def checked_start(task: Task, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return the task's start.

    Raises:
        UsageError: it is not x and y, flat, finite, of that dtype and kind of device.
    """
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
            raise UsageError(
                f"start() of the task has {name} with {found}: expected {expected}; "
                f"{_cure(name, v, task.sizes[name])}."
            )
        if v.requires_grad or not v.isfinite().all():
            raise UsageError(
                f"start() of the task has {name} that requires gradients or is not finite: "
                "return plain finite numbers."
            )
    return start


def digest(start: tuple[Tensor, Tensor]) -> str:
    """Return the SHA-256 of a start, in hex digits."""
    return hashlib.sha256(b"".join(v.numpy(force=True).tobytes() for v in start)).hexdigest()


def checked_losses(task: Task, start: tuple[Tensor, Tensor]) -> list[bool]:
    """Return whether each of the losses depends on x or y at the start.

    Raises:
        UsageError: one is no scalar tensor.
    """
    x, y = (v.detach().requires_grad_() for v in start)
    batch = task.sample(0)
    depends = []
    for name in LOSSES:
        depends.append(evaluated(task, name, x, y, batch).requires_grad)
    return depends


def evaluated(task: Task, name: str, x: Tensor, y: Tensor, batch: Any) -> Tensor:
    """Return the value of one of the task's losses.

    Raises:
        UsageError: it is no scalar tensor.
    """
    value = getattr(task, name)(x, y, batch)
    if not isinstance(value, torch.Tensor) or value.shape != ():
        found = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise UsageError(f"{name}() of the task returns {found}: expected a scalar tensor.")
    return value


def _cure(name: str, v: object, size: int) -> str:
    """Return what to do about a vector of start() that is not as it should be."""
    if not isinstance(v, torch.Tensor) or v.dim() != 1:
        return "return flat tensors, as by v.reshape(-1)"
    if len(v) != size:
        return f"make its length and sizes['{name}'] = {size} agree"
    return "leave dtype= out, since torch's default is the run's, or convert in to(device, dtype)"
