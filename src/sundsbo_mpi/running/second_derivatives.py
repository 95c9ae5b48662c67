"""Can the lower loss be differentiated twice, where the method needs that?

Autograd takes the result of a ``backward`` that is marked ``once_differentiable`` for a constant,
without a word: the error that PyTorch has ready for it waits on a way that leads to neither x nor
y, and so is never raised.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

from sundsbo_mpi.algorithms import second_order
from sundsbo_mpi.comm.agreement import jointly
from sundsbo_mpi.composition.directions import gradient, leaf
from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.running.inspection import evaluated

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.tasks.base import Task

MARKING: Any = once_differentiable(gradient)
"""Every function that is marked runs the code of this one, whichever is marked."""


def inspect_twice(tally: Tally, task: Task, method: str) -> None:
    """Check that the method has the second derivatives that it needs, at the start; collective.

    Raises:
        AgreedError: it needs some that an agent's lower loss has not.
    """
    if method in second_order():
        jointly(tally, partial(require_twice, method, task))


def require_twice(method: str, task: Task) -> None:
    """Check that the lower loss can be differentiated twice at the start, as far as that shows.

    Raises:
        UsageError: it cannot.
    """
    if found := obstacle(task, task.start()):
        raise UsageError(
            f"{method} needs second derivatives of lower() of the task, but {found}: mend that, or "
            "take a method that needs gradients alone, such as sun-dsbo-gt ('sundsbo-mpi list' "
            "tells)."
        )


def obstacle(task: Task, at: tuple[Tensor, Tensor]) -> str:
    """Say what keeps autograd from the second derivatives of the lower loss; empty if nothing."""
    x, y = map(leaf, at)
    value = evaluated(task, "lower", x, y, task.sample(0))
    if marked := _marked(value):
        return f"the backward of {marked} is marked once_differentiable"
    try:
        (slope,) = gradient(value, y, keep_graph=True)
        gradient(slope.sum(), x, y)
    except torch.cuda.OutOfMemoryError:
        raise
    except RuntimeError as error:
        return f"it cannot be differentiated twice ({reason(error)})"
    return ""


def _marked(value: Tensor) -> str:
    """Return the name of a function that may be differentiated once, on the way to a value."""
    known: set[Any] = set()
    waiting = [value.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in known:
            continue
        known.add(node)
        function = getattr(type(node), "_forward_cls", None)  # of one that is written in Python
        if function is not None and _code(function.backward) is MARKING.__code__:
            return str(function.__name__)
        waiting += [before for before, _ in node.next_functions]
    return ""


def _code(function: Callable[..., Any]) -> Any:
    return getattr(function, "__code__", None)
