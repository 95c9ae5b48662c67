"""A launcher that runs nothing and leaves the run file of a run that went as told."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import synthetic_run

from sundsbo_mpi.cli.run import command as run_command
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.config.settings import FLAGS, flag_settings
from sundsbo_mpi.runfile import RunFile
from sundsbo_mpi.runfile.resuming import planned_after

METRICS = ("test_accuracy", "test_accuracy_local", "validation_accuracy", "loss")


def configuration(words):
    """Return the configuration that the words after ``run`` ask for."""
    given = run_command.make_context("run", [str(word) for word in words]).params
    flags = {f: value for f, value in given.items() if f in FLAGS and value not in (None, False)}
    settings = flag_settings(flags)
    return resolve(Request(settings, given["sets"], given["preset"], given["config"]))


def accuracy(config, iteration):
    """Grow with k and with the step of y; lower for SE; every seed adds its own number."""
    base = 70 if config.algorithm["name"].endswith("-gt") else 69
    return base + iteration / 100 + config.run.seed**2 + config.algorithm.get("step_y", 0)


def write(words, status="finished", measure=accuracy, tables=None, **series):
    """Write the run file of the command.

    ``tables`` replace those of the stored configuration, ``series`` those of every row.
    """
    config = configuration(words)
    rows = 1 + planned_after(0, config.run.iterations, config.run.eval_every)
    attributes = synthetic_run.plan().attributes | {
        "config": json.dumps({**config.as_dict(), **(tables or {})}),
        "algorithm": config.algorithm["name"],
    }
    plan = synthetic_run.plan(rows=rows, task_metrics=METRICS, attributes=attributes)
    with_file = RunFile.create(Path(config.output.file), plan, overwrite=True)
    for index in range(rows):
        k = min(index * config.run.eval_every, config.run.iterations)
        row = synthetic_run.row(index, plan)
        value = measure(config, k)
        task = dict(zip(METRICS, (value, value - 1, value + 1, 1 / value), strict=True))
        with_file.append(dataclasses.replace(row, iteration=k, task=task, **series))
    with_file.finish(status)
    with_file.close()


if __name__ == "__main__":
    write(sys.argv[sys.argv.index("run") + 1 :])
