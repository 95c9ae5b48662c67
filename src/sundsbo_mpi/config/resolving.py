"""What a run is made of: layers of settings, each over the one before, checked and complete.

From weakest to strongest: the program's defaults, the defaults of the task and data set, the
settings of an earlier run, a preset, a configuration file, the command's flags, ``--set
table.key=value``.  Presets, files and ``--set`` are TOML, or read as TOML, with the tables ``run``,
``topology``, ``task``, ``algorithm`` and ``output``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sundsbo_mpi.algorithms import method
from sundsbo_mpi.config.likeness import fitting, settings_of
from sundsbo_mpi.config.method_tables import for_method, refuse_method_tables
from sundsbo_mpi.config.settings import (
    Layer,
    assignments,
    complete,
    merge,
    parameters,
    preset,
    read_toml,
    task_defaults,
)
from sundsbo_mpi.config.tables import TABLES, OutputOptions, RunOptions, TopologyOptions
from sundsbo_mpi.errors import unknown
from sundsbo_mpi.tasks import load_task

OPTIONS: Mapping[str, Callable[..., Any]] = {
    "run": RunOptions,
    "topology": TopologyOptions,
    "output": OutputOptions,
}
"""The tables that are the same whatever the task and the method."""


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
    like: str | None = None
    """The file of an earlier run, whose settings lie under all others."""


PROGRAM_DEFAULTS: Layer = {
    "task": {"name": "hyper-cleaning"},
    "algorithm": {"name": "sun-dsbo-gt"},
}


class Source(NamedTuple):
    """A layer of settings, and what it is called."""

    origin: str
    settings: Layer


@dataclass(frozen=True)
class Resolved:
    """A configuration, and the layers that it is made of, those of defaults before the others."""

    config: Config
    defaults: tuple[Source, ...]
    asked: tuple[Source, ...]

    def origins(self) -> dict[str, dict[str, str]]:
        """Return where every setting of the configuration is from, by table and key."""
        found: dict[str, dict[str, str]] = {}
        for table, values in self.config.as_dict().items():
            default = "task default" if table == "task" else "program default"
            found[table] = dict.fromkeys(values, default)
            for origin, layer in (*self.defaults, *self.asked):
                found[table] |= dict.fromkeys(layer.get(table, {}), origin)
        return found

    def wanted(self) -> dict[str, dict[str, Any]]:
        """Return the settings that make the same configuration over the defaults alone."""
        named = {"task": self.config.task, "algorithm": self.config.algorithm}
        names: Layer = {table: {"name": values["name"]} for table, values in named.items()}
        return merge(names, *(layer.settings for layer in self.asked))


def resolve(request: Request, stored: Layer | None = None) -> Config:
    """Return the configuration that a request makes, over the ``stored`` settings of a checkpoint.

    Raises:
        UsageError: a file, table, key or value is not what it should be.
    """
    return resolved(request, stored).config


def resolved(request: Request, stored: Layer | None = None) -> Resolved:
    """Read the files that the request names and merge all layers, over ``stored`` ones.

    Raises:
        UsageError: a file, table, key or value is not what it should be.
    """
    layers = _layers(request, stored)
    named = merge(PROGRAM_DEFAULTS, *(layer.settings for layer in layers))
    names = {table: str(named[table]["name"]) for table in ("task", "algorithm")}
    asked = [Source(o, for_method(names["algorithm"], layer)) for o, layer in layers]
    if odd := next((t for _, layer in asked for t in layer if t not in TABLES), None):
        raise unknown("table", odd, TABLES)
    task_class, options = load_task(names["task"]), method(names["algorithm"]).options
    targets: dict[str, Callable[..., Any]] = {**OPTIONS, "task": task_class, "algorithm": options}
    known = {table: parameters(table, target) for table, target in targets.items()}
    if request.like:
        asked[0] = Source(asked[0].origin, fitting(asked[0].settings, names, known))
    own = _defaults(names, named["task"].get("dataset"), task_class, known["algorithm"])
    defaults = (Source("program default", PROGRAM_DEFAULTS), Source("task default", own))
    settings = merge(*(layer.settings for layer in (*defaults, *asked)))
    made = {
        table: complete(table, target, _nameless(settings.get(table, {})))
        for table, target in targets.items()
    }
    task, algorithm = ({"name": names[table], **made[table]} for table in names)
    tables = {table: options(**made[table]) for table, options in OPTIONS.items()}
    config = Config(task=task, algorithm=algorithm, **tables)
    return Resolved(config, defaults, tuple(asked))


def usual_options(config: Config, task_class: type) -> dict[str, Any]:
    """Return the options of a configuration's method as defaults alone have them.

    Args:
        config: Which task, data set and method.
        task_class: The task's class, whose defaults are taken into account.
    """
    names = {table: getattr(config, table)["name"] for table in ("task", "algorithm")}
    options = method(names["algorithm"]).options
    known = parameters("algorithm", options)
    own = _defaults(names, config.task.get("dataset"), task_class, known)
    return complete("algorithm", options, own["algorithm"])


def _defaults(
    names: Mapping[str, str], dataset: str | None, task_class: type, known: Mapping[str, Any]
) -> Layer:
    """Return the defaults of a task; they may speak of options that another method does not have.

    Args:
        names: Of the task and the method.
        dataset: What is asked for, if anything.
        task_class: The task's class.
        known: The options of the method.
    """
    own = for_method(names["algorithm"], task_defaults(names["task"], dataset, task_class))
    return {**own, "algorithm": {k: v for k, v in own.get("algorithm", {}).items() if k in known}}


def _layers(request: Request, stored: Layer | None) -> list[Source]:
    """Return what is asked for, from the weakest layer to the strongest."""
    sets = assignments(request.sets)
    refuse_method_tables(sets)
    layers = [Source("checkpoint", stored)] if stored else []
    if request.preset:
        layers.append(Source(f"preset {request.preset}", preset(request.preset)))
    if request.file:
        layers.append(Source(f"file {request.file}", read_toml(Path(request.file))))
    layers += [Source("flag", request.flags), Source("--set", sets)]
    if request.like:
        other = any("file" in layer.settings.get("topology", {}) for layer in layers)
        like = settings_of(request.like, TABLES, topology=not other)
        layers.insert(0, Source(f"run file {request.like}", like))
    return layers


def _nameless(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != "name"}
