"""What all functions that build weights share: their name, their laziness, and what is too much."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated

from sundsbo_mpi.errors import UsageError, brief
from sundsbo_mpi.topology.links import halved
from sundsbo_mpi.topology.weights import Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

EdgeWeight = Annotated[
    float | None, "The same w_ij for every edge, in place of Metropolis-Hastings weights."
]

# More take gigabytes and minutes; 4096 agents that are all linked have as many.
MOST_ENTRIES = 2**24


def builder(matrix: Callable[..., csr_array]) -> Callable[..., Weights]:
    """Name the matrix after the function and its arguments; ``lazy=True`` gives (I + W)/2."""

    @wraps(matrix)
    def build(agents: int, *, lazy: bool = False, **options: object) -> Weights:
        check_agents(agents)
        said = inspect.signature(matrix).bind(agents, **options)
        said.apply_defaults()
        named = {key: value for key, value in said.kwargs.items() if value is not None}
        told = [f"{key.replace('_', '-')} {_short(value)}" for key, value in named.items()]
        name = f"{matrix.__name__.replace('_', '-')} ({', '.join([f'n={agents}', *told])})"
        shares = matrix(agents, **said.kwargs)
        # W itself may have ρ = 1 where (I + W)/2 has not, so it is halved before it is judged.
        return Weights(halved(shares), f"lazy {name}") if lazy else Weights(shares, name)

    return build


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def check_agents(agents: int, least: int = 1) -> None:
    """Refuse a number of agents that is too small or beyond all memory.

    Raises:
        UsageError: It is less than ``least`` or above ``MOST_ENTRIES``.
    """
    if not least <= agents <= MOST_ENTRIES:
        raise UsageError(
            f"got {brief(agents)} agents, expected at least {least} and at most {MOST_ENTRIES}; "
            "take another number of agents."
        )


def check_entries(agents: int, share: float) -> None:
    """Refuse, before anything is made, weights for that share of all links, if they are too many.

    Raises:
        UsageError: There are more than ``MOST_ENTRIES``.
    """
    entries = share * agents**2
    if entries > MOST_ENTRIES:
        raise UsageError(
            f"{agents} agents would have {entries:.2g} weights, expected at most {MOST_ENTRIES}; "
            "ask for fewer agents or for a graph with fewer links, such as exponential."
        )
