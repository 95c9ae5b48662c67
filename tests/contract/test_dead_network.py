"""The control without exchange: what a network that delivers nothing leaves, and what shows it."""

import bench
import numpy as np
import pytest
import torch
from lockstep import Lockstep

from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning

AGENTS = 5
OPTIONS = {"dataset": "digits", "heterogeneity": 1.0, "corruption": 0.3}


def digits():
    shards = HyperCleaning.shards(**OPTIONS, agents=AGENTS, seed=0)
    tasks = [
        HyperCleaning(agent=i, agents=AGENTS, seed=0, shard=shard) for i, shard in enumerate(shards)
    ]
    for task in tasks:
        task.to(bench.CPU, torch.float32)
    return tasks


def after(W):
    """Return accuracy of the averaged model, mean local accuracy, and consensus error of y."""
    tasks = digits()
    steps = {"step_x": 300.0, "step_y": 0.05, "step_theta": 0.025, "mu0": 2.0, "gamma": 66.7}
    agents = Lockstep(bench.build("sun-dsbo-gt", AGENTS, **steps), tasks, W).run(100)
    y = torch.from_numpy(agents.rows("y"))

    def accuracy(points):
        pairs = [
            task.report(w["x"], point)["test_accuracy"]
            for task, w, point in zip(tasks, agents.points, points, strict=True)
        ]
        return float(np.divide(*np.sum(pairs, axis=0)))

    average = y.mean(dim=0)
    spread = float((y - average).square().sum(dim=1).mean())
    return accuracy([average] * AGENTS), accuracy(y), spread


def test_consensus_tells_a_dead_network_from_a_living_one():
    averaged, local, consensus = after(bench.ring(AGENTS, 0.5))
    assert averaged > 90
    assert local == pytest.approx(averaged, abs=1.0)
    assert consensus < 5e-3
    _, apart, spread = after(np.eye(AGENTS))
    assert spread > 100 * consensus
    assert apart < local - 5
