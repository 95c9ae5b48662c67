"""Runs the packaged defaults of a task with ten agents on a ring, in this process."""

import numpy as np
import torch
from lockstep import Lockstep

from sundsbo_mpi.config.methods import build_algorithm
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.tasks import load_task

AGENTS = 10


def learn(name, options, iterations):
    """Return the report at the averaged iterate before and after, sums divided by counts."""
    config = resolve(Request(flags={"task": {"name": name, **options}}))
    task_class = load_task(name)
    shards = task_class.shards(agents=AGENTS, seed=0, **config.task_options)
    tasks = [
        task_class(agent=agent, agents=AGENTS, seed=0, shard=shard, **config.task_options)
        for agent, shard in enumerate(shards)
    ]
    for task in tasks:
        task.to(torch.device("cpu"), torch.float64)
    eye = np.eye(AGENTS)
    ring = eye / 2 + (np.roll(eye, 1, axis=0) + np.roll(eye, -1, axis=0)) / 4
    lockstep = Lockstep(build_algorithm(config, AGENTS)[0], tasks, ring)
    before = evaluate(lockstep)
    return before, evaluate(lockstep.run(iterations))


def evaluate(lockstep):
    x, y = (torch.from_numpy(lockstep.rows(v).mean(axis=0)) for v in "xy")
    reports = [task.report(x, y) for task in lockstep.tasks]
    pairs = {
        name: [report[name] for report in reports]
        for name, value in reports[0].items()
        if isinstance(value, tuple)
    }
    return {
        name: sum(total for total, _ in found) / sum(count for _, count in found)
        for name, found in pairs.items()
    }
