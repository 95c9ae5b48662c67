"""Keeps errors that one agent's task raises apart from those that all ranks raise together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from sundsbo_mpi.errors import AgreedError, DivergedError, UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.tasks.base import Task

P = ParamSpec("P")
T = TypeVar("T")


def call_alone(call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call what belongs to a task; local.

    Raises:
        UsageError: it has raised an ``AgreedError`` or a ``DivergedError``, on which ranks leave
            without a word to the others, who may know nothing of it.
    """
    try:
        return call(*given, **named)
    except (AgreedError, DivergedError) as error:
        raise UsageError(str(error)) from error


class _Guarded:
    def __init__(self, task: Task) -> None:
        self._task = task

    def __getattr__(self, name: str) -> Any:
        member = call_alone(getattr, self._task, name)
        return partial(call_alone, member) if callable(member) else member


def guarded(task: Task) -> Task:
    """Return the task with every member called by ``call_alone``."""
    return cast("Task", _Guarded(task))
