"""Checks of what a task returns: its options, shards, sizes, start, report and solutions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from sundsbo_mpi.data_notes import noted
from sundsbo_mpi.errors import UsageError, brief
from sundsbo_mpi.measuring.metrics import kinds
from sundsbo_mpi.running.inspection import check_sizes, checked_start, digest
from sundsbo_mpi.taskcheck.bench import CPU, Bench
from sundsbo_mpi.taskcheck.contents import fingerprint, memory
from sundsbo_mpi.taskcheck.findings import Said, absent, passed, remark
from sundsbo_mpi.texttable import size

CALLS = {
    "start": "",
    "sample": "k draw",
    "upper": "x y batch",
    "lower": "x y batch",
    "single_level": "x y batch",
    "saddle": "x y theta batch penalty",
    "report": "x y",
    "reference": "mu gamma",
    "everything": "",
    "to": "device dtype",
}
"""What each method is given, by position."""


def options(bench: Bench) -> Said:
    """The class is found, its methods take what they are given, and its options are settled."""
    task_class, chosen = bench.task_class, bench.config.task_options
    for name, given in CALLS.items():
        member = inspect.getattr_static(task_class, name, None)
        if member is None or isinstance(member, property):
            continue
        arguments = given.split()
        try:
            inspect.signature(_as_of_an_object(member, task_class)).bind(*arguments)
        except TypeError as error:
            own = {staticmethod: [], classmethod: ["cls"]}.get(type(member), ["self"])
            wanted = ", ".join([*own, *arguments])
            raise UsageError(
                f"{name}() of the task cannot be called as a run does ({error}): expected "
                f"{name}({wanted})."
            ) from None
    return passed(
        ", ".join(f"{key}={brief(value)}" for key, value in chosen.items()) or "no options"
    )


def _as_of_an_object(member: Any, task_class: type) -> Any:
    """Return what a member of the class is as that of an object, which takes no self any more."""
    return member.__get__(object(), task_class) if hasattr(member, "__get__") else member


def shards(bench: Bench) -> Said:
    """``shards`` has a dict of arrays for every agent, and the same ones again."""
    divide = inspect.getattr_static(bench.task_class, "shards", None)
    if divide is None:
        return absent("the agents make or read their data themselves")
    if not isinstance(divide, staticmethod | classmethod):
        raise UsageError("shards() of the task is no static method: write @staticmethod above it.")
    with noted() as notes:
        parts, again = bench.shards, bench.divided()
    for agent, part in enumerate(parts):
        arrays = part.values() if isinstance(part, Mapping) else [part]
        odd = [v for v in arrays if not isinstance(v, np.ndarray | np.generic)]
        if odd:
            raise UsageError(
                f"shards() of the task has {type(odd[0]).__name__} for agent {agent}: expected a "
                "dict of numpy arrays, which is what travels from rank 0."
            )
    if list(map(fingerprint, again)) != list(map(fingerprint, parts)):
        raise UsageError(
            "shards() of the task divides the data otherwise when it is called again: draw from a "
            "generator made from 'seed' alone, or a resumed run would go on with other data."
        )
    largest = size(max(memory(part) for part in parts))
    return remark("; ".join(notes)) if notes else passed(f"up to {largest} an agent")


def constructor(bench: Bench) -> Said:
    """Every agent's task can be built."""
    return passed(f"{len(bench.tasks)} agents, in float64")


def sizes(bench: Bench) -> Said:
    """``sizes`` names two lengths, which are equal on all agents."""
    for task in bench.tasks:
        check_sizes(task)
    _require_equal("mapping sizes", [dict(task.sizes) for task in bench.tasks])
    lengths = bench.tasks[0].sizes
    return passed(f"x {lengths['x']:,}, y {lengths['y']:,}")


def start(bench: Bench) -> Said:
    """``start`` is what a run in float64 needs, the same whenever it is called."""
    starts = [digest(checked_start(task, CPU, torch.float64)) for task in bench.tasks]
    if [digest(task.start()) for task in bench.tasks] != starts:
        raise UsageError(
            "start() of the task returns something else when it is called again: draw from a "
            "generator that is made anew from 'seed'."
        )
    return passed("flat, finite, and the same when called again")


def equal_starts(bench: Bench) -> Said:
    """``start`` is equal on all agents."""
    if bench.agents == 1:
        return absent("there is one agent; --agents 4 compares some")
    remedy = "draw it from a generator made from 'seed' alone, not from 'agent'"
    _require_equal("start()", [digest(task.start()) for task in bench.tasks], remedy)
    return passed("start() is equal on all agents")


def report(bench: Bench) -> Said:
    """``report`` has the same names and forms on all agents; arrays are summarised."""
    x, y = bench.point()
    reports = [task.report(x, y) for task in bench.tasks]
    _require_equal("report()", [list(kinds(r).items()) for r in reports])
    arrays = [name for name, kind in kinds(reports[0]).items() if kind == "array"]
    values = {n: v for n, v in reports[0].items() if n not in arrays}
    if arrays:
        values |= _summarised(bench, {name: [r[name] for r in reports] for name in arrays})
    odd = [name for name, value in values.items() if not _is_finite(value)]
    if odd:
        return remark(f"not finite near the start: {', '.join(odd)}")
    return passed(", ".join(values))


def reference(bench: Bench) -> Said:
    """``reference`` has tensors of the variables' lengths, equal on all agents."""
    if not bench.offers("reference"):
        return absent("no solution is known")
    names: list[str] = []
    for given in ((None, None), (0.5, 0.3)):
        known = [task.reference(*given) for task in bench.tasks]  # type: ignore[attr-defined]
        for name, solution in known[0].items():
            for variable, v in solution.items():
                if variable not in ("x", "y") or v.shape != (bench.tasks[0].sizes[variable],):
                    raise UsageError(
                        f"reference() of the task has '{variable}' of shape {tuple(v.shape)} in "
                        f"'{name}': expected x and y with the lengths in sizes."
                    )
        _require_equal("reference()", list(map(fingerprint, known)))
        names += known[0]
    return passed(", ".join(dict.fromkeys(names)))


def _summarised(bench: Bench, arrays: Mapping[str, list[Any]]) -> dict[str, Any]:
    if not bench.offers("summarise"):
        raise UsageError(
            f"report() of the task has the arrays {', '.join(arrays)}, but there is no method "
            "summarise: add one, or report floats or pairs (sum, count)."
        )
    summary: Any = bench.tasks[0].summarise(arrays)  # type: ignore[attr-defined]
    if "array" in kinds(summary).values() or "pair" in kinds(summary).values():
        raise UsageError(f"summarise() of the task returns {brief(summary)}: expected floats.")
    return dict(summary)


def _is_finite(value: Any) -> bool:
    return all(map(math.isfinite, value if isinstance(value, tuple) else [value]))


def _require_equal(what: str, values: Sequence[Any], remedy: str = "make them equal") -> None:
    """Compare what the agents have; digests are not shown."""
    for agent, value in enumerate(values):
        if value != values[0]:
            shown = "" if isinstance(value, str) else f", {brief(value)} and not {brief(values[0])}"
            raise UsageError(f"agent {agent} has another {what} than agent 0{shown}: {remedy}.")
