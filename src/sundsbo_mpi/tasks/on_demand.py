"""What the agents get, of which no more than one part need be there at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class OnDemand(Generic[T]):
    """One part for each agent, made anew whenever it is asked for, by its number or in order.

    Args:
        agents: Number of agents.
        make: Returns an agent's part, the same one whenever it is called.
    """

    def __init__(self, agents: int, make: Callable[[int], T]) -> None:
        self._agents, self._make = range(agents), make

    def __len__(self) -> int:
        return len(self._agents)

    def __getitem__(self, agent: int) -> T:
        return self._make(self._agents[agent])

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._agents)
