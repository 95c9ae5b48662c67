"""The options of one method or task as a table: what ``sundsbo-mpi list NAME`` prints."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.errors import unknown

if TYPE_CHECKING:
    from sundsbo_mpi.config.describing import Option

BEFORE = (
    "Set one with --set OPTION=VALUE. The settings of a task and its data set come before these "
    "defaults: --print-config prints what a run takes."
)
SCHEDULE = (
    "A schedule is {scale=a, power=p} for a (1 + k)^-p in iteration k, or {theorem=c} for "
    "c sqrt(n / K) with n agents and K iterations."
)


def print_options(name: str) -> None:
    """Print the options of a method or a task, with what they are for.

    Raises:
        UsageError: there is no method or task of that name, or the task cannot be loaded.
    """
    from sundsbo_mpi.algorithms import MethodOptions
    from sundsbo_mpi.config.describing import described
    from sundsbo_mpi.config.settings import parameters
    from sundsbo_mpi.texttable import console, table

    kind, target, about = _found(name)
    shared = {("algorithm", option) for option in parameters("algorithm", MethodOptions)}
    # Those that every method has come last.
    options = sorted(described(kind, target), key=lambda o: (kind, o.name) in shared)
    screen = console()
    if not options:
        screen.print(f"{name}: {about}\n\nIt has no options.", markup=False)
        return
    header = ("option", "expected", "default", "meaning")
    rows = [(f"{kind}.{o.name}", o.expected, _default(o), o.meaning) for o in options]
    screen.print(table(header, rows, title=f"{name}: {about}", words=4, whole=3))
    screen.print(BEFORE, markup=False)
    if any("schedule" in option.expected for option in options):
        screen.print(SCHEDULE, markup=False)


def _found(name: str) -> tuple[str, type, str]:
    """Return the table that a name's options are in, their class, and a line about it."""
    from sundsbo_mpi.algorithms import METHODS
    from sundsbo_mpi.config.describing import summary
    from sundsbo_mpi.tasks import TASKS, load_task

    if name in METHODS:
        return "algorithm", METHODS[name].options, summary(METHODS[name].build)
    if name in TASKS:
        return "task", load_task(name), TASKS[name].about
    if ":" not in name and not name.endswith(".py"):
        raise unknown("method or task", name, [*METHODS, *TASKS])
    own = load_task(name)
    return "task", own, summary(own)


def _default(option: Option) -> str:
    from sundsbo_mpi.config.toml_text import value_text

    value: Any = option.default
    if value is None:
        return "not set"
    if value is inspect.Parameter.empty:
        return "must be given"
    try:
        return value_text(value)
    except TypeError:  # what only a task of the user's own has, and no setting can be
        return repr(value)
