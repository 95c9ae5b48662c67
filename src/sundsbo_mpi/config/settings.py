"""Reading settings: TOML files, packaged presets, ``--set``, and what a table may contain."""

from __future__ import annotations

import inspect
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from sundsbo_mpi.config.written import read_text, require_plain, value_of
from sundsbo_mpi.errors import UsageError, brief, printable, unknown

Layer: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Settings by table and key."""

GIVEN_BY_THE_RUN: Mapping[str, frozenset[str]] = {
    "task": frozenset({"agent", "agents", "seed", "shard"})
}
"""Parameters that are no options, by table."""

FLAGS: Mapping[str, tuple[str, str]] = {
    "topology": ("topology", "file"),
    "place": ("topology", "place"),
    "task": ("task", "name"),
    "dataset": ("task", "dataset"),
    "data_dir": ("task", "data_dir"),
    "algorithm": ("algorithm", "name"),
    "estimator": ("algorithm", "estimator"),
    "iterations": ("run", "iterations"),
    "seed": ("run", "seed"),
    "eval_every": ("run", "eval_every"),
    "dtype": ("run", "dtype"),
    "device": ("run", "device"),
    "stationarity": ("run", "stationarity"),
    "save_final": ("run", "save_final"),
    "max_walltime": ("run", "max_walltime"),
    "overlap": ("run", "overlap"),
    "transport": ("run", "transport"),
    "gpu_direct": ("run", "gpu_direct"),
    "output": ("output", "file"),
    "overwrite": ("output", "overwrite"),
    "trace": ("output", "trace"),
    "checkpoint": ("output", "checkpoint"),
    "checkpoint_every": ("output", "checkpoint_every"),
    "checkpoint_seconds": ("output", "checkpoint_seconds"),
    "comm_timeout": ("run", "comm_timeout"),
    "on_nan": ("run", "on_nan"),
    "on_failure": ("run", "on_failure"),
}
"""The table and key that each flag of ``sundsbo-mpi run`` stands for."""

KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "text, in quotes"}


def merge(*layers: Layer) -> dict[str, dict[str, Any]]:
    """Lay settings over one another, the last one strongest."""
    merged: dict[str, dict[str, Any]] = {}
    for layer in layers:
        for table, values in layer.items():
            merged.setdefault(table, {}).update(values)
    return merged


def flag_settings(given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings that flags of ``sundsbo-mpi run`` stand for."""
    return merge(*({FLAGS[flag][0]: {FLAGS[flag][1]: value}} for flag, value in given.items()))


def read_toml(path: Path) -> Layer:
    """Read a configuration file.

    Raises:
        UsageError: it is missing, not TOML, or has a key outside a table.
    """
    try:
        return _tables(tomllib.loads(read_text(path)), str(path))
    except (ValueError, RecursionError) as error:  # ValueError: not TOML, not text, endless digits
        raise UsageError(
            f"the configuration '{path}' is not TOML: {printable(str(error))}; mend it there."
        ) from None


def _tables(content: Mapping[str, Any], where: str) -> Layer:
    for key, value in content.items():
        if not isinstance(value, dict):
            advice = "use --preset instead" if key == "preset" else "write it below [table]"
            raise UsageError(f"{where} sets '{printable(key)}' outside a table: {advice}.")
    require_plain(content, where)
    return content


def presets() -> tuple[str, ...]:
    """Return the names of the presets in the package, ``group/name``."""
    root = resources.files("sundsbo_mpi") / "presets"
    return tuple(
        sorted(
            f"{group.name}/{entry.name.removesuffix('.toml')}"
            for group in root.iterdir()
            if group.is_dir() and group.name != "default"
            for entry in group.iterdir()
            if entry.name.endswith(".toml")
        )
    )


def preset(name: str) -> Layer:
    """Read a preset of the package.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in presets():
        raise unknown("preset", name, presets())
    return _packaged(name) or {}


def task_defaults(task: str, dataset: str | None, task_class: type) -> Layer:
    """Return the defaults of a task and data set.

    Those of the built-in tasks are packaged; a user's class may have a mapping ``defaults``.
    """
    if ":" in task:
        own = getattr(task_class, "defaults", {})
        where = f"the mapping 'defaults' of {task}"
        if not isinstance(own, Mapping):
            raise UsageError(f"{where} is {own!r}: expected tables of settings.")
        return _tables(own, where)
    chosen = dataset or parameters("task", task_class).get("dataset")
    return _packaged(f"default/{task}-{chosen}") or _packaged(f"default/{task}") or {}


def _packaged(name: str) -> Layer | None:
    group, _, file = f"{name}.toml".partition("/")
    # Looked for among what is there, since a user's words need not make a path.
    for entry in (resources.files("sundsbo_mpi") / "presets" / group).iterdir():
        if entry.name == file:
            return _tables(tomllib.loads(entry.read_text(encoding="utf-8")), name)
    return None


def assignments(texts: Iterable[str]) -> Layer:
    """Read ``table.key=value`` settings; a value that is not one TOML value is taken as text.

    Raises:
        UsageError: a text has another form.
    """
    layer: dict[str, dict[str, Any]] = {}
    for text in texts:
        target, equals, value = text.partition("=")
        table, dot, key = target.strip().partition(".")
        if not (equals and dot and table and key):
            raise UsageError(
                f"--set {printable(text)}: expected table.key=value, as in algorithm.step_x=0.1."
            )
        layer.setdefault(table, {})[key] = value_of(value)
    require_plain(layer, "--set")
    return layer


def parameters(table: str, target: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of ``target`` that are options of a table, with their defaults."""
    given = GIVEN_BY_THE_RUN.get(table, frozenset())
    return {
        name: parameter.default
        for name, parameter in inspect.signature(target).parameters.items()
        if name not in given and parameter.kind is not parameter.VAR_KEYWORD
    }


def complete(table: str, target: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings of one table against a signature and fill in its defaults.

    Raises:
        UsageError: a key is unknown or missing, or a value is of another kind than its default.
    """
    known = parameters(table, target)
    signature = inspect.signature(target).parameters
    anything = any(p.kind is p.VAR_KEYWORD for p in signature.values())
    for key in given:
        if key not in known and not anything:
            raise unknown("setting", f"{table}.{key}", [f"{table}.{name}" for name in known])
    values = known | {
        key: _checked(table, key, _example(signature.get(key), v), v) for key, v in given.items()
    }
    for key, value in values.items():
        if value is inspect.Parameter.empty:
            raise UsageError(f"{table}.{key} has no default: give it with --set {table}.{key}=...")
    return values


def _example(parameter: inspect.Parameter | None, value: Any) -> Any:
    """Return a value of the kind that is expected: the default, or a number where that is none."""
    if parameter is None:
        return None
    optional = parameter.default is None and str(parameter.annotation) == "float | None"
    return 0.0 if optional and value is not None else parameter.default


def _checked(table: str, key: str, default: Any, value: Any) -> Any:
    """Return the value, an integer as float where the default is one."""
    if isinstance(value, int) and abs(value) >= 2**63:
        raise UsageError(
            f"{table}.{key} is {brief(value)}: expected whole numbers below 2^63 in size; "
            "give a smaller one, or write 1e30 for so large a number."
        )
    if default is inspect.Parameter.empty:
        return value
    kind = str if default is None else type(default)
    match default, value:
        case bool(), bool():
            return value
        case ((int() | float()), bool()):
            pass
        case float(), int():
            return float(value)
        case (float(), dict()) | (None, None):  # a schedule is judged by who uses it
            return value
        case _ if isinstance(value, kind):
            return value
        case _ if kind is str and isinstance(value, float) and not math.isfinite(value):
            return str(value)  # the words nan and inf, which TOML takes for numbers
        case _:
            pass
    expected = KINDS.get(kind, f"of type {kind.__name__}")
    raise UsageError(f"{table}.{key} is {brief(value)}: expected {expected}.")
