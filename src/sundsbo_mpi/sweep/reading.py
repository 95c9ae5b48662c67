"""A sweep's file: a configuration with a table ``sweep``, which says what varies and counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundsbo_mpi.config.method_tables import for_method
from sundsbo_mpi.config.settings import Layer, assignments, complete, read_toml
from sundsbo_mpi.config.tables import NOT_SHARED, TABLES
from sundsbo_mpi.config.toml_text import value_text
from sundsbo_mpi.errors import UsageError, brief, unknown
from sundsbo_mpi.metric_names import direction
from sundsbo_mpi.options import require_integer
from sundsbo_mpi.sweep.axes import Axis, axis

SEARCHES = ("grid", "random")
GOALS = ("max", "min")
HELD_BACK = "test"
"""The word in the names of metrics on data that no choice may look at."""
MOST_STAGES, MOST_SEEDS = 10, 1000
OWNED = tuple(f"output.{key}" for key in NOT_SHARED)
"""Settings that every run of a sweep has for itself."""


@dataclass(frozen=True)
class SweepOptions:
    """The table ``sweep`` but for ``over``, the values, and ``refine``, what is made finer."""

    search: str = "grid"
    samples: int = 20
    """Settings drawn in every stage of a random search."""
    random_seed: int = 0
    """Of these draws."""
    seeds: int = 1
    """Runs of each setting, with run.seed, run.seed + 1, ..."""
    metric: str = "validation_accuracy"
    goal: str | None = None
    """Whether more of the metric is better, "max", or less, "min"; None goes by its name."""
    finer: int = 0
    """Stages after the first, each with values around the best so far."""
    preset: str | None = None
    config: str | None = None

    def __post_init__(self) -> None:
        """Refuse values outside their range, and metrics that no choice may look at."""
        if self.search not in SEARCHES:
            raise unknown("sweep.search", self.search, SEARCHES)
        require_integer("sweep.samples", self.samples, 1)
        require_integer("sweep.random_seed", self.random_seed, 0, 2**53)
        require_integer("sweep.seeds", self.seeds, 1, MOST_SEEDS)
        require_integer("sweep.finer", self.finer, 0, MOST_STAGES)
        if HELD_BACK in words(self.metric):
            raise UsageError(
                f"sweep.metric is '{self.metric}', which is measured on test data: what is chosen "
                "by them cannot be judged by them any more; take one on validation data, such as "
                "validation_accuracy."
            )
        if self.goal is None and not self.known_goal:
            raise UsageError(
                f"sweep.metric is '{self.metric}', of which it is not known whether more is "
                "better: is it misspelt? If not, say sweep.goal = 'max' or 'min'."
            )
        if self.goal not in (None, *GOALS):
            raise unknown("sweep.goal", str(self.goal), GOALS)

    @property
    def known_goal(self) -> str:
        """What the name of the metric says of it, "" if nothing."""
        return {1: "max", -1: "min", 0: ""}[direction(self.metric)]

    @property
    def maximise(self) -> bool:
        """Whether more of the metric is better."""
        return (self.goal or self.known_goal) == "max"


@dataclass(frozen=True)
class Sweep:
    """What a sweep's file says."""

    options: SweepOptions
    axes: Mapping[str, Axis]
    """The values of every setting, ``table.key``, that varies."""
    refine: tuple[str, ...]
    """The settings that later stages make finer."""
    tables: Layer
    """All other settings of the file."""
    command: tuple[str, ...]
    """Those that the command lays over them, as ``--set`` takes them."""

    def sets(self, name: str) -> tuple[str, ...]:
        """Return all other settings of the runs of a method, as ``--set`` takes them.

        Raises:
            UsageError: a table for methods is for none, or has a key that none has.
        """
        own = for_method(name, self.tables)
        file = [f"{t}.{k}={value_text(v)}" for t, values in own.items() for k, v in values.items()]
        return (*file, *self.command)


def words(metric: str) -> list[str]:
    """Return the words in a metric's name."""
    return metric.lower().replace("/", "_").replace("-", "_").split("_")


def read_sweep(path: Path, sets: Sequence[str] = ()) -> Sweep:
    """Read a sweep's file.

    Args:
        path: The file.
        sets: Settings that the command lays over those of the file.

    Raises:
        UsageError: it is missing, or something in it is not what it should be.
    """
    tables = {name: dict(values) for name, values in read_toml(path).items()}
    if "sweep" not in tables:
        raise UsageError(f"'{path}' has no table [sweep], which says what to try: add it.")
    own = tables.pop("sweep")
    if odd := next((table for table in tables if table not in TABLES), None):
        raise unknown("table", odd, (*TABLES, "sweep"))
    over = own.pop("over", {})
    refine = own.pop("refine", None)
    options = SweepOptions(**complete("sweep", SweepOptions, own))
    axes = _axes(over)
    for name in (*_names(tables), *_names(assignments(sets)), *axes):
        if name in OWNED:
            raise UsageError(f"a sweep sets {name} for every run itself: leave it out.")
        if name in axes and name == "run.seed":
            raise UsageError("run.seed is not to be chosen: say how many with sweep.seeds.")
    return Sweep(options, axes, _refined(refine, axes), tables, tuple(sets))


def _axes(over: Any) -> dict[str, Axis]:
    if not isinstance(over, Mapping) or not over:
        raise UsageError(
            f"sweep.over is {brief(over)}: expected the settings to try, as in algorithm.step_x = "
            "[0.1, 1.0] below [sweep.over]."
        )
    for table, values in over.items():
        if "." in table:
            raise UsageError(f"[sweep.over] has '{table}' in quotes: write it without them.")
        if table not in TABLES or not isinstance(values, Mapping):
            raise unknown("table of settings in [sweep.over]", table, TABLES)
    return {f"{t}.{key}": axis(f"{t}.{key}", v) for t, of in over.items() for key, v in of.items()}


def _names(tables: Layer) -> list[str]:
    return [f"{table}.{key}" for table, values in tables.items() for key in values]


def _refined(refine: Any, axes: Mapping[str, Axis]) -> tuple[str, ...]:
    if refine is None:
        return tuple(axes)
    if not isinstance(refine, list):
        raise UsageError(
            f"sweep.refine is {brief(refine)}: expected a list of settings, as in "
            "['algorithm.step_x']."
        )
    for name in refine:
        if name not in axes:
            raise unknown("setting of sweep.refine", str(name), axes)
    return tuple(refine)
