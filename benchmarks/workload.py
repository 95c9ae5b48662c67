"""The problem of the benchmarks of speed: hyper-cleaning at the paper's size, on random images.

Agents have 5,000 training samples each, so that ten of them share x of 50,000 numbers beside y and
theta of 238,510 (a network 784-300-10): a message of 527,020 numbers, 2.1 MB in float32.  What is
learnt does not matter here, so nothing needs to be downloaded.
"""

from __future__ import annotations

import numpy as np
import torch

from sundsbo_mpi.comm.world import load_mpi
from sundsbo_mpi.composition import Algorithm
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning
from sundsbo_mpi.tasks.shards import Shard
from sundsbo_mpi.topology import Weights

SAMPLES, EVALUATED, FEATURES, CLASSES = 5_000, 100, 784, 10
TEN = 10
Y = 238_510
PAYLOAD = TEN * SAMPLES + 2 * Y
WARM_UP = 30
"""Iterations before those that are measured: plans, windows and pages are made in the first twenty,
once in a run."""


def shard(agent: int) -> Shard:
    """Return the samples of one agent, of the kind that the task divides real data into."""
    rng = np.random.default_rng(agent)
    parts = {"train": SAMPLES, "validation": SAMPLES // 5, "test": EVALUATED}
    drawn: Shard = {}
    for part, number in parts.items():
        drawn[f"{part}_inputs"] = rng.integers(0, 256, (number, FEATURES), dtype=np.uint8)
        drawn[f"{part}_labels"] = rng.integers(0, CLASSES, number)
    return drawn | {
        "corrupted": rng.random(SAMPLES) < 0.3,
        "shape": np.array([1, 28, 28]),
        "classes": np.array(CLASSES),
        "mean": np.array([127.5]),
        "std": np.array([73.9]),
    }


def task(agent: int, **options: int) -> HyperCleaning:
    """Build one agent's problem; every tenth agent has the same, so that x stays as long."""
    torch.set_default_dtype(torch.float32)
    own = agent % TEN
    return HyperCleaning(agent=own, agents=TEN, seed=0, shard=shard(own), **options)


def algorithm(name: str, agents: int, iterations: int, **options: str) -> Algorithm:
    """Build a method with the paper's settings of hyper-cleaning, and other options."""
    load_mpi()  # first: the next import would initialise MPI
    from sundsbo_mpi.config.methods import build_algorithm

    flags = {"algorithm": {"name": name, **options}, "run": {"iterations": iterations}}
    return build_algorithm(resolve(Request(preset="paper/hyper-cleaning", flags=flags)), agents)[0]


def ring(agents: int) -> Weights:
    """Return a ring with self-weight 1/2."""
    W = np.zeros((agents, agents))
    for i in range(agents):
        W[i, i] += 0.5
        W[i, (i + 1) % agents] += 0.25
        W[i, (i - 1) % agents] += 0.25
    return Weights(W, f"ring of {agents}")
