"""Data for binary logistic regression, drawn at random and different for every agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks.on_demand import OnDemand

if TYPE_CHECKING:
    import numpy.typing as npt

    from sundsbo_mpi.tasks.shards import Shard

NOISE = 0.1


def synthetic_shards(
    agents: int, seed: int, *, features: int, sizes: dict[str, int]
) -> OnDemand[Shard]:
    """Draw every agent's samples.

    A sample of agent i, counted from 1, is

        u ~ N(0, i^2 I),   label = 1 if u' tau* + 0.1 beta > 0 else 0

    with one tau* ~ N(0, I) for all agents and a normal number beta for each sample.

    Args:
        agents: Number of agents.
        seed: Decides tau* and all samples.
        features: Length of u.
        sizes: Number of samples of each agent, by part: train, validation, test.

    Source: the paper's synthetic logistic regression, whose labels are -1 and 1.  Difference from
    the source: (1) it writes beta for a noise vector and also "a noise rate of beta = 0.1"; read
    here as one factor of 0.1 on standard normal noise.
    """
    truth = generator(seed, Stream.SYNTHETIC).standard_normal(features)
    return OnDemand(agents, lambda agent: _shard(agent, seed, truth, sizes))


def _shard(agent: int, seed: int, truth: npt.NDArray[np.float64], sizes: dict[str, int]) -> Shard:
    rng = generator(seed, Stream.SYNTHETIC, agent)
    shard: Shard = {
        "shape": np.array([1, 1, len(truth)]),
        "classes": np.array(2),
        "mean": np.zeros(1),
        "std": np.ones(1),
    }
    for part, size in sizes.items():
        inputs = (agent + 1) * rng.standard_normal((size, len(truth)))
        beta = rng.standard_normal(size)
        shard[f"{part}_inputs"] = inputs
        shard[f"{part}_labels"] = (inputs @ truth + NOISE * beta > 0).astype(np.int64)
    return shard
