"""What a run is made of: layers of settings, each over the one before, checked and complete.

From weakest to strongest: the program's defaults, the defaults of the task and data set, a preset,
a configuration file, the command's flags, ``--set table.key=value``.  All but the first and the
flags are TOML, or read as TOML, with the tables ``run``, ``topology``, ``task``, ``algorithm`` and
``output``.  A preset or configuration file may serve several methods: a table such as
``[algorithm."sparkle-*"]`` holds for the methods whose names match, over what stands in
``[algorithm]`` itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sundsbo_mpi.algorithms import METHODS, method
from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.settings import (
    Layer,
    assignments,
    complete,
    merge,
    parameters,
    preset,
    read_toml,
    task_defaults,
)
from sundsbo_mpi.tables import OutputOptions, RunOptions, TopologyOptions
from sundsbo_mpi.tasks import load_task

TABLES = ("run", "topology", "task", "algorithm", "output")


@dataclass(frozen=True)
class Config:
    """A complete, checked configuration; ``task`` and ``algorithm`` hold a ``name`` and options."""

    run: RunOptions
    topology: TopologyOptions
    output: OutputOptions
    task: dict[str, Any]
    algorithm: dict[str, Any]

    @property
    def task_options(self) -> dict[str, Any]:
        """The options of the task, without its name."""
        return _nameless(self.task)

    @property
    def algorithm_options(self) -> dict[str, Any]:
        """The options of the method, without its name."""
        return _nameless(self.algorithm)

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain tables, from which the same run can be configured again."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Request:
    """What the user asked for, before anything was read: the same on all ranks."""

    flags: Layer = field(default_factory=dict)
    sets: tuple[str, ...] = ()
    preset: str | None = None
    file: str | None = None
    resume: str | None = None
    """The folder of the checkpoints from which a run goes on, whose settings lie under all others.
    """


PROGRAM_DEFAULTS: Layer = {
    "task": {"name": "hyper-cleaning"},
    "algorithm": {"name": "sun-dsbo-gt"},
}


def resolve(request: Request, stored: Layer | None = None) -> Config:
    """Read the files that the request names and merge all layers, over ``stored`` ones.

    Raises:
        UsageError: a file, table, key or value is not what it should be.
    """
    sets = assignments(request.sets)
    _refuse_tables(sets)
    layers = (
        *([stored] if stored else []),
        *([preset(request.preset)] if request.preset else []),
        *([read_toml(Path(request.file))] if request.file else []),
        request.flags,
        sets,
    )
    named = merge(PROGRAM_DEFAULTS, *layers)
    task_name, algorithm_name = str(named["task"]["name"]), str(named["algorithm"]["name"])
    asked = merge(*(_for_method(algorithm_name, layer) for layer in layers))
    if odd := next((table for table in asked if table not in TABLES), None):
        raise unknown("table", odd, TABLES)
    task_class = load_task(task_name)
    options = method(algorithm_name).options
    own = task_defaults(task_name, named["task"].get("dataset"), task_class)
    defaults = _for_method(algorithm_name, own)
    # Task defaults may speak of options that another method does not have.
    known = parameters("algorithm", options)
    shared = {k: v for k, v in defaults.get("algorithm", {}).items() if k in known}
    settings = merge({**defaults, "algorithm": shared}, asked)

    def table(name: str) -> dict[str, Any]:
        return _nameless(settings.get(name, {}))

    return Config(
        run=RunOptions(**complete("run", RunOptions, table("run"))),
        topology=TopologyOptions(**complete("topology", TopologyOptions, table("topology"))),
        output=OutputOptions(**complete("output", OutputOptions, table("output"))),
        task={"name": task_name, **complete("task", task_class, table("task"))},
        algorithm={"name": algorithm_name, **complete("algorithm", options, table("algorithm"))},
    )


def _nameless(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != "name"}


def _for_method(name: str, layer: Layer) -> Layer:
    """Lay the tables for methods of this name over the layer's table ``algorithm``.

    Raises:
        UsageError: a pattern matches no method at all, or its table has a key that is an option
            of none that it matches.
    """
    chosen: dict[str, Any] = {}
    matching: dict[str, Any] = {}
    for key, value in layer.get("algorithm", {}).items():
        if isinstance(value, dict) and _matches(key):
            _check_keys(key, value)
            matching |= value if fnmatchcase(name, key) else {}
        elif isinstance(value, dict) and any(sign in key for sign in "*?["):
            raise UsageError(
                f'[algorithm."{key}"] is for no method: correct the pattern '
                "('sundsbo-mpi list' names the methods)."
            )
        else:
            chosen[key] = value
    return {**layer, "algorithm": chosen | matching}


def _matches(pattern: str) -> list[str]:
    return [known for known in METHODS if fnmatchcase(known, pattern)]


def _check_keys(pattern: str, table: Mapping[str, Any]) -> None:
    """Refuse keys that no method of the pattern has, also where this run's is another one."""
    options = [parameters("algorithm", METHODS[name].options) for name in _matches(pattern)]
    known = {key for of_one in options for key in of_one}
    if odd := next((key for key in table if key not in known), None):
        raise unknown(f'setting of [algorithm."{pattern}"]', odd, known)


def _refuse_tables(sets: Layer) -> None:
    """Refuse tables for methods in ``--set``, where they would win over later settings."""
    for key, value in sets.get("algorithm", {}).items():
        if isinstance(value, dict) and _matches(key):
            raise UsageError(
                f"--set algorithm.{key} is a table for methods, which belongs into a configuration "
                "file: set its keys one by one, as in algorithm.step_x=0.1."
            )
