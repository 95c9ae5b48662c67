"""What the paper shows: its labels, the experiments behind them, and the digits that it prints.

Packaged as TOML: ``paper/labels.toml`` names every table and figure, and every other file there is
an experiment, that is, runs of some methods under some conditions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, TypeAlias

from sundsbo_mpi.errors import unknown

Topology: TypeAlias = Mapping[str, Any]
"""The name of a builder as ``graph``, and its options."""


@dataclass(frozen=True)
class Label:
    """A table, a figure or another labelled part of the paper.

    ``kind`` is table, figure, theorem, settings, illustration, overview or algorithm; ``over`` the
    horizontal axis of a figure; ``says`` what the paper reads off a figure without digits.
    """

    name: str
    kind: str
    caption: str
    over: str = ""
    says: str = ""
    experiments: tuple[str, ...] = ()
    drawings: Mapping[str, Topology] = field(default_factory=dict)


@dataclass(frozen=True)
class Condition:
    """What is the same for all methods of a block of a table; None leaves the experiment's own."""

    name: str
    settings: tuple[str, ...] = ()
    method_settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Further settings by pattern of the method's name."""
    agents: int | None = None
    iterations: int | None = None
    topology: Topology | None = None


@dataclass(frozen=True)
class Printed:
    """A row of a printed table: one mean and one deviation for each printed iteration."""

    mean: tuple[float, ...]
    std: tuple[float, ...] = ()
    no_target: str = ""
    """Why the row is not to be compared with, if so."""


@dataclass(frozen=True)
class Tuning:
    """The common grid of factors on the steps of the paper, and the condition to choose them at.

    Without factors the experiment uses what another one has found under the same ``name``.
    """

    name: str
    condition: str = ""
    step_x: tuple[float, ...] = ()
    others: tuple[float, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """Runs of ``methods`` under ``conditions``, and what the paper prints of them.

    The settings lie over the ``preset``, if one is named, those of the condition over both.
    ``printed`` is keyed by method and condition; ``printed_at`` holds the iterations of its rows.
    """

    name: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    iterations: int
    eval_every: int
    agents: int
    seeds: int
    conditions: tuple[Condition, ...]
    preset: str
    topology: Topology | None
    settings: tuple[str, ...]
    tuning: Tuning | None
    printed_at: tuple[int, ...]
    printed: Mapping[tuple[str, str], Printed]


@cache
def labels() -> Mapping[str, Label]:
    """Return every label by name, in the order of the paper."""
    return {name: Label(name=name, **_frozen(given)) for name, given in _packaged("labels").items()}


def label(name: str) -> Label:
    """Look a label up.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in labels():
        raise unknown("label", name, labels())
    return labels()[name]


@cache
def experiment(name: str) -> Experiment:
    """Read an experiment that a label names."""
    given = _packaged(name)
    printed = given.pop("paper", {"iterations": [], "rows": []})
    conditions = [_frozen(condition) for condition in given.pop("conditions")]
    tuning = given.pop("tuning", None)
    defaults: dict[str, Any] = {"preset": "", "topology": None, "settings": []}
    return Experiment(
        name=name,
        conditions=tuple(Condition(**condition) for condition in conditions),
        tuning=Tuning(**_frozen(tuning)) if tuning else None,
        printed_at=tuple(printed["iterations"]),
        printed={
            (row.pop("method"), row.pop("condition")): Printed(**_frozen(row))
            for row in printed["rows"]
        },
        **_frozen(defaults | given),
    )


def _packaged(name: str) -> dict[str, Any]:
    entry = resources.files("sundsbo_mpi").joinpath("reproduce", "paper", f"{name}.toml")
    return tomllib.loads(entry.read_text(encoding="utf-8"))


def _frozen(given: Mapping[str, Any]) -> dict[str, Any]:
    """Turn lists into tuples, also those in tables below."""

    def freeze(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: freeze(entry) for key, entry in value.items()}
        return tuple(value) if isinstance(value, list) else value

    return {key: freeze(value) for key, value in given.items()}
