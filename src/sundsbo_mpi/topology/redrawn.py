"""Connected random graphs with m neighbours per agent, drawn anew as the iterations go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array

from sundsbo_mpi.errors import UsageError, brief
from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.topology.building import check_agents, check_entries
from sundsbo_mpi.topology.links import halved, metropolis
from sundsbo_mpi.topology.mixing import Mixing
from sundsbo_mpi.topology.spectrum import DENSE_UP_TO, alike_rho, extremes, mean_square_rho

if TYPE_CHECKING:
    from numpy.typing import NDArray

KIND = "random"
DRAWS, DRAWS_OF_MANY = 100, 10
"""Draws from which ρ is estimated; large random graphs differ little from one another."""
RANGES = {"every": (1, 2**63 - 1), "seed": (0, 2**63 - 1), "halvings": (0, 16)}
"""What a file can hold of each number, and halvings after which gossip still does something."""


@dataclass(frozen=True, eq=False)
class Redrawn(Mixing):
    """W_k of a random graph that is redrawn every T iterations, a function of (seed, k) alone.

    A draw takes m uniformly from those that ``neighbours`` allow, links all agents to a ring in
    random order, and then links random pairs of agents that both have fewer than m neighbours until
    no such pair is left.  So the graph is connected, and every agent has m neighbours, except that
    those who find no partner any more have fewer (one agent at least where n m is odd); m = 2 gives
    the ring alone.  Its edges get Metropolis-Hastings weights.

    Source: the dynamic topology of the SUN-DSBO paper.

    Differences from the source:
        1. It leaves open how a connected graph is found among those with m random neighbours.
        2. It leaves open whether a random m belongs to the graph or to the agent; here to the
           graph.

    Args:
        size: The number n of agents, at least 3.
        neighbours: The smallest and the largest m, from 2 to n - 1.
        every: The number T of iterations that a graph lasts.
        seed: The seed of the draws.
        halvings: How often W_k is replaced by (I + W_k) / 2.
        name: What the matrices are called in messages and figures.

    Raises:
        UsageError: A number is out of its range.
    """

    size: int
    neighbours: tuple[int, int]
    every: int
    seed: int
    halvings: int
    name: str

    def __post_init__(self) -> None:
        check_agents(self.size, least=3)
        check_entries(self.size, 1.0)
        fewest, most = self.neighbours
        if not 2 <= fewest <= most <= self.size - 1:
            raise UsageError(
                f"got {brief(fewest)} to {brief(most)} neighbours, expected 2 to {self.size - 1} "
                f"of {self.size} agents; take other numbers of neighbours."
            )
        for name, (least, largest) in RANGES.items():
            if not least <= getattr(self, name) <= largest:
                raise UsageError(
                    f"got {name} {brief(getattr(self, name))}, expected {least} to {largest}; "
                    "take a number in that range."
                )

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any], name: str) -> Self:
        """Make it from the values of a ``recipe``.

        Raises:
            UsageError: A number is out of its range.
            ValueError: They are not those of a recipe (KeyError, TypeError).
        """
        if recipe["kind"] != KIND:
            raise ValueError(f"it holds a recipe of the unknown kind {brief(recipe['kind'])}")
        neighbours = recipe["neighbours"]
        if not isinstance(neighbours, list) or len(neighbours) != 2:
            raise ValueError(f"its neighbours are {brief(neighbours)} where two integers belong")
        fewest, most = (_integer("neighbours", value) for value in neighbours)
        numbers = {key: _integer(key, recipe[key]) for key in RANGES}
        return cls(_integer("agents", recipe["agents"]), (fewest, most), name=name, **numbers)

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The values that fix all W_k, which files keep in place of matrices."""
        return {
            "kind": KIND,
            "agents": self.size,
            "neighbours": list(self.neighbours),
            "every": self.every,
            "seed": self.seed,
            "halvings": self.halvings,
        }

    @property
    def agents(self) -> int:
        """The number n of agents."""
        return self.size

    @cached_property
    def rho(self) -> float:
        """The mean-square shrinkage of the disagreement per iteration, over the sampled draws.

        ρ = λ_max(E[BᵀB])^(1/(2T)) with B = (W - 11ᵀ/n)^T, so that the expected square of the
        disagreement falls at least by ρ² per iteration (Boyd, Ghosh, Prabhakar and Shah, 2006).
        Of more than ``DENSE_UP_TO`` agents E[BᵀB] is taken as what it is over all draws, a multiple
        of I - 11ᵀ/n.
        """
        judge = mean_square_rho if self.size <= DENSE_UP_TO else alike_rho
        return judge(self.sample, self.every)

    @cached_property
    def lambda_min(self) -> float:
        """The bound 1 - 2^(1-h) m/(m + 1) on the eigenvalues of all draws; h halvings, largest m.

        Metropolis-Hastings weights have w_ii >= 1/(m + 1), and no eigenvalue is below
        min_i 2 w_ii - 1 (Gershgorin).  An m-regular bipartite graph, such as an even ring, attains
        it.  Where all draws are one graph but for the order of agents, with m = 2 or m = n - 1
        alone, this is its smallest eigenvalue.
        """
        fewest, most = self.neighbours
        if fewest == most and most in (2, self.size - 1):
            return extremes(self.at(0))[1]
        return 1 - 2.0 ** (1 - self.halvings) * most / (most + 1)

    @property
    def matrices(self) -> tuple[csr_array, ...]:
        """None: they never repeat."""
        return ()

    @property
    def symmetric(self) -> bool:
        """True."""
        return True

    @cached_property
    def sample(self) -> tuple[csr_array, ...]:
        """The first 100 draws, or 10 of more than ``DENSE_UP_TO`` agents."""
        draws = DRAWS if self.size <= DENSE_UP_TO else DRAWS_OF_MANY
        return tuple(self.at(draw * self.every) for draw in range(draws))

    @property
    def description(self) -> str:
        """The name, the number of neighbours and how often they are redrawn."""
        m = " to ".join(map(str, dict.fromkeys(self.neighbours)))
        often = "iteration" if self.every == 1 else f"{self.every} iterations"
        return f"{self.name} ({m} random neighbours, redrawn every {often})"

    @property
    def sha256(self) -> str:
        """Hex digest of the recipe."""
        return hashlib.sha256(f"sundsbo-mpi {json.dumps(self.recipe)}\n".encode()).hexdigest()

    def turn(self, k: int) -> int:
        """Return k // T."""
        return k // self.every

    def at(self, k: int) -> csr_array:
        """Draw W_k."""
        rng = generator(self.seed, Stream.TOPOLOGY, self.turn(k))
        m = int(rng.integers(*self.neighbours, endpoint=True))
        W = metropolis(csr_array(connected_graph(self.size, m, rng).astype(float)))
        for _ in range(self.halvings):
            W = halved(W)
        return W

    def edges(self) -> NDArray[np.int64]:
        """Return all pairs of agents: each of them is linked at one time or another."""
        return np.argwhere(~np.eye(self.size, dtype=bool)).astype(np.int64)

    def lazy(self) -> Redrawn:
        """Return the same graphs with (I + W_k) / 2."""
        return replace(self, halvings=self.halvings + 1, name=f"lazy {self.name}")


def _integer(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"its {key} holds {brief(value)} where an integer belongs")
    return value


def connected_graph(agents: int, m: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw a ring in random order, and link pairs with fewer than m >= 2 neighbours while any are.

    Returns:
        Who is linked to whom, (n, n), symmetric.
    """
    order = rng.permutation(agents)
    linked = np.zeros((agents, agents), dtype=bool)
    linked[order, np.roll(order, 1)] = linked[np.roll(order, 1), order] = True
    room = np.full(agents, m - 2)
    free = np.argwhere(np.triu(~linked, 1)) if m > 2 else np.empty((0, 2), dtype=np.int64)
    free = rng.permutation(free)
    while len(free):
        for i, j in free[:agents].tolist():
            if room[i] and room[j]:
                linked[i, j] = linked[j, i] = True
                room[i] -= 1
                room[j] -= 1
        later = free[agents:]
        free = later[(room[later] > 0).all(axis=1)]  # most are soon out of the question
    return linked
