"""Run files in which every agent spends the same in every iteration, by numbers that are told."""

from __future__ import annotations

import contextlib
import copy
import json

import h5py
import numpy as np
from synthetic_run import CONFIG, plan, row

from sundsbo_mpi.runfile import RunFile
from sundsbo_mpi.runfile.schema import COSTS

SECONDS = {"gradient": 0.03, "pack": 0.01, "wait": 0.04, "mix": 0.01, "evaluation": 0.05}
START = 7
"""What everything costs before iteration 0."""


def configured(**settings):
    """Return the synthetic configuration with settings by ``table__key``."""
    config = copy.deepcopy(CONFIG) | {"run": {"seed": 0, "iterations": 20, "eval_every": 10}}
    for name, value in settings.items():
        table, _, key = name.partition("__")
        config.setdefault(table, {})[key] = value
    return config


def write(
    path,
    metric=(10.0, 50.0, 80.0),
    *,
    seconds=0.1,
    payload=(1000, 1000, 1000),
    gradient=(0.03, 0.03, 0.03),
    hosts=("node1", "node1", "node2"),
    status="finished",
    name="test_accuracy",
    seed=0,
    config=None,
    every=10,
    **attributes,
):
    """Write a run whose k-th evaluation, at iteration ``every`` k, has the k-th of the values."""
    agents = len(payload)
    config = configured() if config is None else config
    config["run"]["seed"] = seed
    about = plan().attributes | {"config": json.dumps(config), "seed": seed, "iterations": 20}
    about |= {"algorithm": config["algorithm"]["name"], "topology_sha256": f"{agents:08d}"}
    info = {
        "host": np.array(hosts),
        "device": np.array(["cpu"] * agents),
        "threads": np.array([1] * agents),
        "train_samples": np.array([100] * agents),
        "validation_samples": np.array([50] * agents),
    }
    planned = plan(
        agents=agents,
        rows=3,
        task_metrics=(name, f"{name}_local"),
        edges=np.array([[0, 1], [1, 0]]),
        weights=np.full((agents, agents), 1 / agents),
        attributes=about | attributes,
        agents_info=info,
    )
    with contextlib.closing(RunFile.create(path, planned)) as run:
        for index, value in enumerate(metric):
            k = every * index
            costs = {cost: np.zeros(agents, dtype=kind) for cost, kind in COSTS.items()}
            costs |= {f"seconds_{p}": np.full(agents, s * k + START) for p, s in SECONDS.items()}
            costs["seconds_gradient"] = np.array(gradient) * k + START
            costs["bytes_payload"] = np.array(payload) * k + START
            costs["bytes_network"] = np.array(payload) * k // 4
            costs["rounds"] = np.full(agents, 2 * k)
            task = {name: value, f"{name}_local": value - 1}
            changes = {"iteration": k, "elapsed_s": START + seconds * k, "task": task}
            run.append(row(index, planned, agents=costs, **changes))
        if status != "running":
            run.finish(status)
    return path


def without(path, *series):
    """Take series away, as if an earlier release had written the file."""
    with h5py.File(path, "r+") as file:
        for name in series:
            del file[f"metrics/agents/{name}"]
    return path
