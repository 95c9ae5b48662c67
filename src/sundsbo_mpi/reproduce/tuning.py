"""Steps from one small grid that is the same for every method, chosen on validation data."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sundsbo_mpi.campaign import ranking
from sundsbo_mpi.campaign.tables import Table
from sundsbo_mpi.config.settings import preset, presets, read_toml
from sundsbo_mpi.config.toml_text import comment, value_text
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.reproduce.plan import Job, Wish, jobs
from sundsbo_mpi.texttable import number

if TYPE_CHECKING:
    from sundsbo_mpi.reproduce.paper import Experiment, Tuning

METRIC = "validation_accuracy"
SEEDS = 1
COMMAND = "  sundsbo-mpi "


@dataclass(frozen=True)
class Trial:
    """One method with one set of steps."""

    method: str
    steps: Mapping[str, float]
    jobs: tuple[Job, ...]

    @property
    def settings(self) -> tuple[str, ...]:
        """The steps as ``--set`` takes them."""
        return _settings(self.steps)


Result: TypeAlias = ranking.Result[Trial]


def trials(experiment: Experiment, wish: Wish) -> list[Trial]:
    """Plan the grid for every method: factors on step_x times factors on all other steps.

    Raises:
        UsageError: the experiment has no grid.
    """
    tuning = experiment.tuning
    if tuning is None or not tuning.step_x:
        raise UsageError(f"{experiment.name} has no grid of steps: tune another table of its task.")
    wish = dataclasses.replace(wish, only=(tuning.condition,), seeds=wish.seeds or SEEDS)
    found = []
    for method in [m for m in experiment.methods if not wish.methods or m in wish.methods]:
        mine = dataclasses.replace(wish, methods=(method,))
        usual = jobs(experiment, mine)[0]
        if usual.refusal:
            raise UsageError(usual.refusal)
        for steps in _grid(usual.wanted["algorithm"], tuning):
            chosen = dataclasses.replace(mine, steps={method: _settings(steps)})
            found.append(Trial(method, steps, tuple(jobs(experiment, chosen))))
    return found


def _grid(algorithm: Mapping[str, Any], tuning: Tuning) -> Iterable[dict[str, float]]:
    usual = {k: v for k, v in algorithm.items() if k.startswith("step_") and isinstance(v, float)}
    for factor_x, factor in itertools.product(tuning.step_x, tuning.others):
        # Rounded, since the product of two short decimals need not be one.
        yield {
            name: float(f"{step * (factor_x if name == 'step_x' else factor):.6g}")
            for name, step in usual.items()
        }


def _settings(steps: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(f"algorithm.{name}={value_text(value)}" for name, value in steps.items())


def results(found: Sequence[Trial]) -> list[Result]:
    """Read the validation accuracy that every trial reached."""
    return [ranking.result(trial, METRIC) for trial in found]


def best(found: Sequence[Result]) -> dict[str, Trial]:
    """Return the trial with the highest validation accuracy of each method that has one."""
    counting = [result for result in found if not result.trouble]
    winners: dict[str, Trial] = {}
    for method in dict.fromkeys(result.trial.method for result in counting):
        mine = [result for result in counting if result.trial.method == method]
        winners[method] = ranking.best_first(mine, maximise=True)[0].trial
    return winners


def trials_table(found: Sequence[Result]) -> Table:
    """List every trial with its validation accuracy."""
    rows = tuple(
        (
            result.trial.method,
            ", ".join(result.trial.settings).replace("algorithm.", ""),
            "missing or diverged" if result.trouble else number(result.metric.mean),
        )
        for result in found
    )
    return Table("trials on validation data", ("method", "steps", "validation accuracy"), rows, 2)


def write_tuned(path: Path, base: str, winners: Mapping[str, Trial], command: str) -> None:
    """Write the preset ``base`` with the tuned steps of each method, and how they were found.

    What the file holds of other methods, and the commands that found it, are kept.  It has a table
    for every method, as presets have, where ``toml_text.document`` writes the settings of one run.

    Raises:
        UsageError: there are no winners, or the file that is there is damaged.
    """
    import tomli_w

    if not winners:
        raise UsageError(
            f"no trial has finished with a finite validation accuracy, so '{path}' was not "
            "written: mend what is said above, and start the trials without --collect."
        )

    content: dict[str, Any] = copy.deepcopy({k: dict(v) for k, v in preset(base).items()})
    commands = [comment(f"{COMMAND}{command}")]
    if path.exists():
        content = {table: dict(values) for table, values in read_toml(path).items()}
        old = path.read_text(encoding="utf-8")
        commands = [
            line for line in old.splitlines() if line.startswith(comment(COMMAND))
        ] + commands
    for method, trial in winners.items():
        content.setdefault("algorithm", {})[method] = dict(trial.steps)
    header = [f"# {base} with steps chosen on validation data, never on test data, by", *commands]
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(dict.fromkeys(header)) + "\n\n" + tomli_w.dumps(content)
    path.write_text(text, encoding="utf-8")


def tuned_path(directory: Path, name: str) -> Path:
    """Return where tuned steps are written, to be looked at and copied to presets/tuned."""
    return directory / "tuned" / f"{name}.toml"


def tuned_steps(
    experiment: Experiment, methods: Sequence[str], directory: Path
) -> dict[str, tuple[str, ...]]:
    """Read the tuned steps of methods: those found in ``directory``, else those of the package.

    Raises:
        UsageError: a method has none, or their file is damaged.
    """
    if experiment.tuning is None:
        raise UsageError(f"{experiment.name} has no tuned steps: leave --tuned out.")
    own, packaged = tuned_path(directory, experiment.tuning.name), f"tuned/{experiment.tuning.name}"
    usual = preset(packaged) if packaged in presets() else {}
    tables = (read_toml(own) if own.exists() else usual).get("algorithm", {})
    if lacking := [method for method in methods if not isinstance(tables.get(method), dict)]:
        raise UsageError(
            f"there are no tuned steps of {', '.join(lacking)} for {experiment.name}: find them "
            "with --tune, or leave them out with --methods."
        )
    return {method: _settings(tables[method]) for method in methods}
