"""Randomness without state: everything drawn is a function of the seed and of what it is for."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What random numbers are drawn for; streams with different numbers are independent."""

    SPLIT = 0
    CORRUPTION = 1
    TRAIN_SHARDS = 2
    VALIDATION_SHARDS = 3
    START = 4
    TRAIN_BATCHES = 5
    VALIDATION_BATCHES = 6
    PROBLEM = 7
    NOISE = 8
    COMPRESSION = 9
    SYNTHETIC = 20
    SUBSET = 21
    META_TASKS = 30
    META_ORDER = 31
    META_IMAGES = 32
    META_SHARDS = 33
    META_EVALUATION = 34
    TOPOLOGY = 40


def generator(seed: int, stream: Stream, *key: int) -> np.random.Generator:
    """Return the random generator that belongs to (seed, stream, key), in its first state.

    Args:
        seed: The seed of the run, at least 0.
        stream: What the numbers are for.
        key: Further non-negative integers, such as the agent, the draw and the iteration.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(stream), *key)))
