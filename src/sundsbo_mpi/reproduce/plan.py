"""From an experiment to its runs: one for every method, condition and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sundsbo_mpi.campaign import job as campaign
from sundsbo_mpi.campaign.naming import place, run_name
from sundsbo_mpi.config.identity import identity
from sundsbo_mpi.config.settings import assignments, flag_settings
from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.reproduce.topologies import (
    planned_weights,
    topology_command,
    topology_path,
    write_topology,
)

if TYPE_CHECKING:
    from sundsbo_mpi.config.resolving import Config
    from sundsbo_mpi.reproduce.paper import Condition, Experiment, Topology
    from sundsbo_mpi.topology import Mixing

OWNED: Mapping[tuple[str, str], str] = {
    ("algorithm", "name"): "choose methods with --methods",
    ("run", "seed"): "say how many with --seeds",
    ("run", "iterations"): "give the number with --iterations",
    ("output", ""): "choose the directory with --out",
    ("topology", ""): "choose among the conditions with --only",
}
"""What --set must not change, as runs and their files would be taken for others; "" is any key."""


@dataclass(frozen=True)
class Wish:
    """What the user wants other than the paper's; None and empty leave the experiment's own.

    ``steps`` are settings by method that replace those of the conditions, such as tuned steps.
    """

    directory: Path
    seeds: int | None = None
    only: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    iterations: int | None = None
    sets: tuple[str, ...] = ()
    preset: str | None = None
    data_dir: str | None = None
    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Job(campaign.Job):
    """One run, and which cell it belongs to."""

    method: str
    condition: str
    seed: int
    topology: Topology
    topology_file: Path

    def before(self) -> list[list[str]]:
        """Return the command that writes its topology, unless it is there."""
        there = self.topology_file.exists()
        words = topology_command(self.topology_file, self.agents, self.topology)
        return [] if there else [words]

    def prepare(self) -> None:
        """Make its directories and its topology.

        Raises:
            OSError, UsageError: they cannot be made.
        """
        super().prepare()
        write_topology(self.topology_file, self.agents, self.topology)


def check(experiments: Sequence[Experiment], wish: Wish) -> None:
    """Refuse unknown conditions and methods, one length for several, and settings of the plan.

    Raises:
        UsageError: so it is.
    """
    conditions = [condition for found in experiments for condition in found.conditions]
    for kind, known, wanted in (
        ("condition", [condition.name for condition in conditions], wish.only),
        ("method", [method for found in experiments for method in found.methods], wish.methods),
    ):
        if odd := next((name for name in wanted if name not in known), None):
            raise unknown(kind, odd, set(known))
    _check_sets(wish.sets)
    if wish.iterations and any(condition.iterations for condition in conditions):
        raise UsageError(
            f"--iterations {wish.iterations}: the number of iterations is what varies here; choose "
            "among the conditions with --only."
        )


def _check_sets(sets: Sequence[str]) -> None:
    for table, values in assignments(sets).items():
        for key in values:
            if advice := OWNED.get((table, key)) or OWNED.get((table, "")):
                raise UsageError(
                    f"--set {table}.{key} would make other runs than those of the table: leave it "
                    f"out; {advice}."
                )


def jobs(experiment: Experiment, wish: Wish) -> list[Job]:
    """Plan the runs, seeds running slowest, so that all cells get their first run early.

    Raises:
        UsageError: a topology's file is damaged.
    """
    seeds = range(experiment.seeds if wish.seeds is None else wish.seeds)
    conditions = [c for c in experiment.conditions if not wish.only or c.name in wish.only]
    setups = [_setup(experiment, condition, wish) for condition in conditions]
    return [
        _job(experiment, setup, method, seed, wish)
        for seed in seeds
        for setup in setups
        for method in experiment.methods
        if not wish.methods or method in wish.methods
    ]


class _Setup(NamedTuple):
    """A condition with its agents, the file of their weights, and what is in it."""

    condition: Condition
    agents: int
    topology: Topology
    file: Path
    weights: Mixing


def _setup(experiment: Experiment, condition: Condition, wish: Wish) -> _Setup:
    agents = condition.agents or experiment.agents
    topology = condition.topology or experiment.topology or {}
    file = topology_path(wish.directory, agents, topology)
    return _Setup(condition, agents, topology, file, planned_weights(file, agents, topology))


def _job(experiment: Experiment, setup: _Setup, method: str, seed: int, wish: Wish) -> Job:
    condition = setup.condition
    iterations = wish.iterations or condition.iterations or experiment.iterations
    flags = {
        "topology": str(setup.file),
        "algorithm": method,
        "data_dir": wish.data_dir,
        "iterations": iterations,
        "eval_every": _eval_every(experiment.eval_every, iterations),
        "seed": seed,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    sets = (*experiment.settings, *condition.settings, *_own(condition, method, wish), *wish.sets)
    preset = wish.preset or experiment.preset
    config, refusal = _resolve(preset, given, sets)
    name = run_name(config, setup.weights) if config else f"{experiment.name}_{method}_refused"
    path, checkpoint = place(wish.directory, name)
    return Job(
        title=f"{method}, {condition.name}, seed {seed}",
        method=method,
        condition=condition.name,
        seed=seed,
        agents=setup.agents,
        topology=setup.topology,
        topology_file=setup.file,
        settings=(*_words(preset, given, sets), "--overwrite"),
        path=path,
        checkpoint=checkpoint,
        wanted=identity(config.as_dict()) if config else {},
        refusal=refusal,
    )


def _words(preset: str, flags: Mapping[str, Any], sets: Sequence[str]) -> list[str]:
    """Return the arguments of ``sundsbo-mpi run`` for all this."""
    words = ["--preset", preset] if preset else []
    for flag, value in flags.items():
        words += [f"--{flag.replace('_', '-')}", str(value)]
    for text in sets:
        words += ["--set", text]
    return words


def _own(condition: Condition, method: str, wish: Wish) -> tuple[str, ...]:
    """Return the settings of this method alone; chosen steps take the place of the paper's."""
    if method in wish.steps:
        return wish.steps[method]
    found = condition.method_settings.items()
    return tuple(text for pattern, texts in found if fnmatchcase(method, pattern) for text in texts)


def _eval_every(usual: int, iterations: int) -> int:
    """Return the usual distance of evaluations, or a fifth of a run too short for two of them."""
    return usual if iterations >= 2 * usual else max(1, iterations // 5)


def _resolve(
    preset: str, flags: Mapping[str, Any], sets: tuple[str, ...]
) -> tuple[Config | None, str]:
    """Return the configuration that the run will have, or why it would be refused."""
    from sundsbo_mpi.config.resolving import Request, resolve

    try:
        return resolve(Request(flags=flag_settings(flags), sets=sets, preset=preset or None)), ""
    except UsageError as error:
        return None, str(error)
