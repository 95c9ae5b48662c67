"""Shards of equal size whose class proportions differ between agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Indices = npt.NDArray[np.int64]

GROUP = 10
"""Agents are served in groups of at most this many."""

ATTEMPTS = 100
"""Draws after which the fullest one is taken: for H << 0.1 almost every draw starves some agent."""


def dirichlet_shards(
    labels: Indices, agents: int, heterogeneity: float, rng: np.random.Generator
) -> list[Indices]:
    """Divide samples among agents, class by class in Dirichlet proportions.

    The samples are shuffled and given to groups of at most ten agents.  In a group of m agents with
    N samples each class is split in proportions p ~ Dir(H 1_m), where agents that already hold N/m
    samples get none; all is drawn again until the poorest agent holds N/(2m).  At last the agents'
    lists are joined and cut into n parts of floor(N/n) samples, so a few may remain unused.

    The smaller H, the fewer classes an agent sees.

    Args:
        labels: Class of each sample, shape (N,) with N >= agents.
        agents: Number n of shards.
        heterogeneity: The parameter H > 0.
        rng: Source of the draws.

    Returns:
        n arrays of floor(N/n) distinct indices; no index is in two of them.

    The construction is that of the heterogeneity study of Lin et al., "Quasi-global momentum"
    (ICML 2021), with a limit on the number of draws.
    """
    order = rng.permutation(len(labels))
    groups = [min(GROUP, agents - first) for first in range(0, agents, GROUP)]
    ends = np.cumsum(groups) * len(labels) // agents
    joined: list[Indices] = []
    for members, samples in zip(groups, np.split(order, ends[:-1]), strict=True):
        by_class = [samples[labels[samples] == label] for label in np.unique(labels[samples])]
        cuts = _cuts([len(one) for one in by_class], members, heterogeneity, rng)
        pieces = [np.split(one, cut) for one, cut in zip(by_class, cuts, strict=True)]
        joined += [piece[member] for member in range(members) for piece in pieces]
    size = len(labels) // agents
    return list(np.concatenate(joined)[: agents * size].reshape(agents, size))


def _cuts(
    sizes: list[int], members: int, heterogeneity: float, rng: np.random.Generator
) -> list[Indices]:
    """Return, for each class, the members - 1 places at which its samples are cut."""
    fair = sum(sizes) / members
    best: list[Indices] = []
    poorest = -1
    for _ in range(ATTEMPTS):
        held = np.zeros(members, dtype=np.int64)
        cuts = []
        for size in sizes:
            room = held < fair
            shares = rng.dirichlet(np.full(members, heterogeneity)) * room
            if shares.sum() == 0:  # tiny H: the class was meant for agents that are full
                shares[rng.choice(np.flatnonzero(room))] = 1
            cut = (np.cumsum(shares / shares.sum())[:-1] * size).astype(np.int64)
            held += np.diff(cut, prepend=0, append=size)
            cuts.append(cut)
        if held.min() > poorest:
            best, poorest = cuts, int(held.min())
        if poorest >= fair / 2:
            break
    return best
