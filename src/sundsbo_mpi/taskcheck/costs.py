"""Checks of a task in the dtype that its run has, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from sundsbo_mpi.composition.directions import saddle_of_losses, sun
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.running.inspection import LOSSES, checked_start, evaluated
from sundsbo_mpi.taskcheck.bench import CPU, Bench, precision
from sundsbo_mpi.taskcheck.contents import memory
from sundsbo_mpi.taskcheck.findings import Said, absent, passed
from sundsbo_mpi.tasks.base import Penalty
from sundsbo_mpi.texttable import seconds, size
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from sundsbo_mpi.tasks.base import Task

CALLS = 5
"""Of which the median is told, after one that is not counted."""


def to(bench: Bench) -> Said:
    """``to`` changes the dtype of what the task returns to that of the run."""
    if not bench.offers("to"):
        return absent("without it the task runs on CPUs alone")
    task: Any = bench.build(0, torch.float64)
    with precision(bench.dtype):  # which start() may rely on, as in a run
        task.to(CPU, bench.dtype)
        _require_precision(task, bench.dtype, f"after to(device, {bench.dtype})")
    return passed(f"to {_name(bench.dtype)}, which a run with these settings has")


def own_precision(bench: Bench) -> Said:
    """In the dtype of the run, float32 unless asked otherwise, start and losses are sound."""
    with precision(bench.dtype):
        task = bench.build(0, bench.dtype)
        _require_precision(task, bench.dtype, f"in {_name(bench.dtype)}")
    return passed(
        f"start and losses in {_name(bench.dtype)}, as a run with these settings has them"
    )


def speed(bench: Bench) -> Said:
    """Tell the seconds of what an iteration of SUN-DSBO evaluates, and of a report."""
    with precision(bench.dtype):
        task = bench.build(0, bench.dtype)
        x, y = task.start()
        w, batch = {"x": x, "y": y, "theta": y.clone()}, task.sample(0)
        direction = _seconds(lambda: sun(task, w, batch, mu=1.0, gamma=1.0))
        said = f"{seconds(direction)} for the direction of sun-dsbo-*"
        if hasattr(task, "saddle"):
            slow = _seconds(lambda: saddle_of_losses(task, w, batch, Penalty(1.0, 1.0)))
            said += f" ({seconds(slow)} without saddle)"
        reported = _seconds(lambda: task.report(x, y))
    threads = torch.get_num_threads()
    sampled = seconds(_seconds(lambda: task.sample(1)))
    return passed(
        f"{said}, {sampled} for a batch, {seconds(reported)} for a report; "
        f"{number_of(threads, 'thread')}"
    )


def space(bench: Bench) -> Said:
    """Tell the bytes that one agent holds, in the dtype of the run."""
    with precision(bench.dtype):
        task = bench.build(0, bench.dtype)
        variables = memory(*task.start()) + memory(task.start()[1])
        batch = memory(task.sample(0))
    return passed(
        f"data of agent 0 {size(memory(task))}, a batch {size(batch)}, x with y and theta "
        f"{size(variables)}, of which methods keep several"
    )


def _require_precision(task: Task, dtype: torch.dtype, when: str) -> None:
    x, y = checked_start(task, CPU, dtype)
    for name in LOSSES:
        value = evaluated(task, name, x, y, task.sample(0))
        if value.dtype != dtype or not value.isfinite():
            raise UsageError(
                f"{name}() of the task is {float(value):.4g} in {value.dtype} at the start, "
                f"{when}: expected a finite number in {dtype}; convert all data in to(device, "
                "dtype), or make them in torch's default dtype."
            )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _seconds(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(1 + CALLS):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return median(taken[1:])
