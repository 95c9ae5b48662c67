"""Random graphs that are drawn once: builders like the others, with a seed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import numpy as np
from scipy.sparse import csr_array  # noqa: TC002  the command reads the annotations

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology.building import EdgeWeight, builder, check_entries
from sundsbo_mpi.topology.links import adjacency, weighted

if TYPE_CHECKING:
    from numpy.typing import NDArray

Probability = Annotated[float | None, "Probability of every edge, by default 2 log(n)/n."]
Degree = Annotated[int, "Number d of neighbours of every agent; n d must be even."]
Seed = Annotated[int, "Seed of the draws, which are repeated until the graph is connected."]
TRIES = 1000
SWEEPS = 200
"""Far more than all pairs need to become good: each time more than a quarter of the bad ones do."""


@builder
def erdos_renyi(
    agents: int,
    *,
    probability: Probability = None,
    seed: Seed = 0,
    edge_weight: EdgeWeight = None,
) -> csr_array:
    """Erdős-Rényi graph: every pair is linked with one probability, redrawn until connected."""
    p = min(1.0, 2 * math.log(agents) / agents) if probability is None else probability
    if not 0 <= p <= 1:
        raise UsageError(f"got probability {p:g}, expected 0 to 1; change --probability.")
    _check_seed(seed)
    check_entries(agents, p)
    rng = np.random.default_rng(seed)
    for _ in range(TRIES):
        later = [i + 1 + np.flatnonzero(rng.random(agents - 1 - i) < p) for i in range(agents)]
        earlier = np.repeat(np.arange(agents), [js.size for js in later])
        graph = adjacency(agents, np.column_stack([earlier, np.concatenate(later)]))
        if _connected(graph):
            return weighted(graph, edge_weight)
    raise UsageError(
        f"none of {TRIES} graphs of {agents} agents with edge probability {p:g} is connected; "
        "raise --probability."
    )


@builder
def random_regular(
    agents: int, *, degree: Degree = 4, seed: Seed = 0, edge_weight: EdgeWeight = None
) -> csr_array:
    """Random regular graph: every agent is linked to d others, redrawn until connected.

    From d = 3 an expander with high probability: ρ stays away from one however large n is.  Up to
    d + 1 agents are all linked to one another.
    """
    check_entries(agents, min(1.0, degree / agents))
    _check_seed(seed)
    if degree < 1:
        raise UsageError(f"got degree {degree}, expected at least 1; change --degree.")
    degree = min(degree, agents - 1)
    if agents * degree % 2:
        raise UsageError(
            f"{agents} agents cannot have {degree} neighbours each, expected an even product of "
            "the two; change --degree or --agents."
        )
    rng = np.random.default_rng(seed)
    for _ in range(TRIES):
        pairs = _regular_pairs(agents, degree, rng)
        if pairs is not None and _connected(graph := adjacency(agents, pairs)):
            return weighted(graph, edge_weight)
    raise UsageError(
        f"none of {TRIES} graphs of {agents} agents with {degree} neighbours each is connected; "
        "raise --degree."
    )


def _regular_pairs(agents: int, degree: int, rng: np.random.Generator) -> NDArray[np.int64] | None:
    """Pair d stubs of every agent at random, and cross bad pairs with random others.

    A pair is bad if it joins an agent to itself or repeats another pair.  Where every agent has
    more neighbours than strangers, the strangers are drawn.

    Returns:
        The two ends of every edge, (n d / 2, 2); None if bad pairs remain.
    """
    if 2 * degree >= agents:
        strangers = _regular_pairs(agents, agents - 1 - degree, rng)
        return None if strangers is None else _complement(strangers, agents)
    pairs = rng.permutation(np.repeat(np.arange(agents), degree)).reshape(-1, 2)
    for _ in range(SWEEPS):
        bad = _bad_pairs(pairs, agents)
        if not bad.size:
            return pairs
        _cross(pairs, bad, rng.integers(len(pairs), size=bad.size), agents)
    return None


def _cross(
    pairs: NDArray[np.int64], bad: NDArray[np.int64], others: NDArray[np.int64], agents: int
) -> None:
    """Let bad pairs and others exchange their second ends where both become good."""
    crossed = np.stack([pairs[bad], pairs[others]])
    crossed[..., 1] = crossed[::-1, :, 1].copy()
    codes = _codes(crossed, agents)
    new = _once(codes) & ~np.isin(codes, _codes(pairs, agents))
    new &= (crossed[..., 0] != crossed[..., 1]) & _once(np.stack([bad, others]))
    good = new.all(axis=0)
    pairs[bad[good]], pairs[others[good]] = crossed[:, good]


def _once(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which values occur no second time."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(counts[place].reshape(values.shape) == 1)


def _codes(pairs: NDArray[np.int64], agents: int) -> NDArray[np.int64]:
    """Number pairs, (..., 2), whatever the order of their ends."""
    return np.asarray(pairs.min(axis=-1) * agents + pairs.max(axis=-1))


def _complement(pairs: NDArray[np.int64], agents: int) -> NDArray[np.int64]:
    linked = np.triu(np.ones((agents, agents), dtype=bool), 1)
    linked[pairs.min(axis=1), pairs.max(axis=1)] = False
    return np.argwhere(linked)


def _bad_pairs(pairs: NDArray[np.int64], agents: int) -> NDArray[np.int64]:
    _, first = np.unique(_codes(pairs, agents), return_index=True)
    repeated = np.ones(len(pairs), dtype=bool)
    repeated[first] = False
    return np.flatnonzero(repeated | (pairs[:, 0] == pairs[:, 1]))


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise UsageError(f"got seed {seed}, expected at least 0; change --seed.")


def _connected(graph: csr_array) -> bool:
    from scipy.sparse.csgraph import connected_components

    return bool(connected_components(graph, directed=False)[0] == 1)
