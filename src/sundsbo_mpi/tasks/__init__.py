"""The problems to solve: built in by name, or a class of the user's own.

Nothing here imports torch; a task's module is imported when the task is asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sundsbo_mpi.errors import UsageError, unknown

if TYPE_CHECKING:
    from types import ModuleType

    from sundsbo_mpi.tasks.base import Task


class BuiltIn(NamedTuple):
    """A task that comes with the program."""

    target: str
    """The ``module:Class`` that its name stands for."""
    about: str
    """One line about it."""


TASKS: dict[str, BuiltIn] = {
    "hyper-cleaning": BuiltIn(
        "sundsbo_mpi.tasks.hyper_cleaning:HyperCleaning",
        "learn to ignore samples with wrong labels (images of any data set)",
    ),
    "hyper-representation": BuiltIn(
        "sundsbo_mpi.tasks.hyper_representation:HyperRepresentation",
        "features that serve a linear classifier (images of any data set)",
    ),
    "hyperparameter": BuiltIn(
        "sundsbo_mpi.tasks.hyperparameter:Hyperparameter",
        "learn ridge coefficients of a logistic regression (synthetic or images)",
    ),
    "meta-learning": BuiltIn(
        "sundsbo_mpi.tasks.meta_learning.task:MetaLearning",
        "features with which new classes are learnt from few images (omniglot, ...)",
    ),
    "quadratic": BuiltIn(
        "sundsbo_mpi.tasks.quadratic:Quadratic",
        "heterogeneous quadratic with known solutions and optional gradient noise",
    ),
    "toy": BuiltIn(
        "sundsbo_mpi.tasks.toy:Toy",
        "the paper's example whose lower level is merely convex, known solution, made for n = 5",
    ),
}
"""The built-in tasks by name."""

MEMBERS = ("start", "sample", "upper", "lower", "report")
"""The methods that a task's class must have; ``sizes`` may be set by its ``__init__``."""


@cache
def load_task(name: str) -> type[Task]:
    """Find a task's class; its module is executed once.

    Args:
        name: A key of ``TASKS``, ``path/to/file.py:Class`` or ``package.module:Class``.  A file is
            executed with its own directory importable, as ``python file.py`` would do.

    Raises:
        UsageError: There is no such task, file, module or class, or the class lacks a method.
    """
    target = TASKS[name].target if name in TASKS else name
    source, colon, class_name = target.rpartition(":")
    if not colon or not source:
        if target.endswith(".py"):
            raise UsageError(f"task '{name}' names a file and no class: write '{name}:Class'.")
        raise unknown("task", name, TASKS)
    module = _from_file(Path(source)) if source.endswith(".py") else _from_package(source)
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise unknown(f"class in {source}", class_name, classes)
    missing = [member for member in MEMBERS if not callable(getattr(found, member, None))]
    if missing:
        lacks = ", ".join(f"{member}()" for member in missing)
        raise UsageError(
            f"task '{name}' lacks {lacks}: a task has {', '.join(MEMBERS)} and the mapping sizes."
        )
    return found


def _from_file(path: Path) -> ModuleType:
    try:
        there = path.is_file()
    except OSError:  # the name is too long, or a directory on the way is closed
        there = False
    if not there:
        raise UsageError(
            f"task file {path} does not exist (looked in {Path.cwd()}): correct the path."
        )
    module_name = f"sundsbo_mpi_task_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None  # the suffix .py has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise UsageError(
            f"task file {error.filename}, line {error.lineno}, is not Python: {error.msg}; mend it."
        ) from None
    return module


def _from_package(module_name: str) -> ModuleType:
    # A name with an empty part would be looked for relative to a package that there is not.
    if all(module_name.split(".")):
        try:
            return importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise  # the module is there, and imports something that is not
    raise UsageError(
        f"task module '{module_name}' cannot be imported: install it, add its directory to "
        "PYTHONPATH, or name the file as path/to/file.py:Class."
    )
