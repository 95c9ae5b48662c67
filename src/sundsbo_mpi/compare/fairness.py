"""Where the runs do not bear comparison: one sentence for each reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sundsbo_mpi.compare.groups import Group, alike
from sundsbo_mpi.compare.targets import Aim
from sundsbo_mpi.runfile import RunData

ENDINGS = {
    "running": "is still running or was killed",
    "failed": "failed",
    "interrupted": "was interrupted",
}


def remarks(groups: Sequence[Group], aim: Aim | None) -> list[str]:
    """Return what should be borne in mind, the gravest first."""
    runs = [run for group in groups for run in group.runs]
    return [
        *_problems(groups),
        *_repeated(groups),
        *(_unfinished(run) for run in runs if run.status != "finished"),
        *(
            f"'{run.path}' has times that say little: {run.attributes['oversubscribed']}."
            for run in runs
            if run.attributes.get("oversubscribed")
        ),
        *_seeds(groups),
        *_schedules(groups, runs),
        *_aims(aim),
    ]


def _problems(groups: Sequence[Group]) -> Iterable[str]:
    told = {"task": "tasks", "dataset": "data sets"}
    for name, words in told.items():
        values = [group.first.attributes.get(name, "") for group in groups]
        if len(set(values)) > 1:
            named = ", ".join(dict.fromkeys(str(value) or "none" for value in values))
            yield f"the {words} differ ({named}): neither times nor metrics mean the same."


def _repeated(groups: Sequence[Group]) -> Iterable[str]:
    same: dict[str, list[int]] = {}
    for group in groups:
        same.setdefault(alike(group.first), []).append(group.number)
    for numbers in same.values():
        if len(numbers) > 1:
            yield (
                f"groups {_listed(numbers)} are of one configuration and environment, with seeds "
                "in common: the same again, or clusters that look alike."
            )


def _unfinished(run: RunData) -> str:
    planned = run.attributes.get("iterations")
    done = int(run.iteration[-1]) if run.rows else 0
    of = "" if planned is None else f" of {planned}"
    return f"'{run.path}' {ENDINGS[run.status]}; {done}{of} iterations count."


def _seeds(groups: Sequence[Group]) -> Iterable[str]:
    found = [sorted(map(str, group.seeds)) for group in groups]
    if any(seeds != found[0] for seeds in found):
        told = "; ".join(
            f"{group.number}: {', '.join(seeds)}"
            for group, seeds in zip(groups, found, strict=True)
        )
        yield f"the seeds differ ({told}): part of the differences is chance."


def _schedules(groups: Sequence[Group], runs: Sequence[RunData]) -> Iterable[str]:
    every = [_option(group.first, "eval_every") for group in groups]
    if len(set(every)) > 1:
        yield (
            f"they were evaluated every {_listed(every)} iterations: what it takes to a target is "
            "known no better than that."
        )
    ends = sorted({int(run.iteration[-1]) for run in runs if run.rows})
    if len(ends) > 1:
        yield (
            f"their last evaluations are at different iterations, {_listed(ends)}: compare what it "
            "takes to the target, not the last values."
        )


def _aims(aim: Aim | None) -> Iterable[str]:
    if aim is None:
        yield (
            "the runs have no metric in common of which it is known which way is better: name one "
            "with --metric and --better to see what it takes to a target."
        )


def _option(run: RunData, name: str) -> Any:
    table = run.config.get("run")
    return table.get(name, "unknown") if isinstance(table, dict) else "unknown"


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(map(str, values)))
