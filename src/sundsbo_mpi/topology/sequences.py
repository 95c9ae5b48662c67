"""The sequences of weight matrices that the command can write, built like single matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from scipy.sparse import csr_array

from sundsbo_mpi.topology.building import check_agents, check_entries
from sundsbo_mpi.topology.cycle import Cycle
from sundsbo_mpi.topology.mixing import Mixing
from sundsbo_mpi.topology.redrawn import Redrawn

Neighbours = Annotated[int, "Number m of neighbours of every agent."]
NeighboursMax = Annotated[
    int | None, "Draw m anew with every graph, from --neighbours up to this number."
]
Every = Annotated[int, "Iterations that a graph lasts."]
Seed = Annotated[int, "Seed of the draws."]


def one_peer(agents: int, *, lazy: bool = False) -> Cycle:
    """One-peer exponential graph: in iteration k agent i sends to i + 2^(k mod T) alone.

    W_k = (I + P_k)/2 with T = ceil(log2 n) shifts P_k, directed; where n is a power of two, T
    iterations give the exact average (Ying et al., 2021, arXiv 2110.13363).
    """
    check_agents(agents)
    shifts = [2**t for t in range(max(1, (agents - 1).bit_length()))]
    check_entries(agents, 2 * len(shifts) / agents)
    i = np.arange(agents)
    receivers = [(np.concatenate([i, (i + shift) % agents]), np.tile(i, 2)) for shift in shifts]
    halves = np.full(2 * agents, 0.5)
    cycle = Cycle(
        tuple(csr_array((halves, places), shape=(agents, agents)) for places in receivers),
        f"one-peer (n={agents})",
    )
    return cycle.lazy() if lazy else cycle


def random(  # noqa: PLR0913  they are the options of the command
    agents: int,
    *,
    neighbours: Neighbours,
    neighbours_max: NeighboursMax = None,
    every: Every = 1,
    seed: Seed = 0,
    lazy: bool = False,
) -> Redrawn:
    """Connected random graph with m neighbours per agent, redrawn as the iterations go on.

    A ring in random order, and random edges between agents with fewer than m neighbours while there
    are such pairs; Metropolis-Hastings weights.  The file holds the recipe, not the matrices.
    """
    most = neighbours if neighbours_max is None else neighbours_max
    name = f"random (n={agents}, seed {seed})"
    redrawn = Redrawn(agents, (neighbours, most), every, seed, 0, name)
    return redrawn.lazy() if lazy else redrawn


SEQUENCES: dict[str, Callable[..., Mixing]] = {"one-peer": one_peer, "random": random}
