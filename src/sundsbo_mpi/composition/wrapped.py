"""Methods made of a method by doing something else with what it sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sundsbo_mpi.composition.algorithm import Algorithm, Lengths, Oracles, State
from sundsbo_mpi.composition.techniques import Rounds, T
from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.outgoing import Outgoing
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class Wrapped:
    """A method as it is; a subclass changes what it changes."""

    method: Algorithm

    @property
    def lambda_min(self) -> float:
        """The bound of the method."""
        return self.method.lambda_min

    @property
    def rounds(self) -> int:
        """Communication rounds per iteration."""
        return self.method.rounds

    @property
    def vectors(self) -> int:
        """Vectors sent to each neighbour per iteration, in however many bytes."""
        return self.method.vectors

    @property
    def oracles(self) -> Oracles:
        """What the method evaluates."""
        return self.method.oracles

    @property
    def penalty(self) -> Callable[[int], Penalty | None]:
        """The penalty of the method."""
        return self.method.penalty

    def start(self, task: Task) -> tuple[Variables, State]:
        """Return the start of the method."""
        return self.method.start(task)

    def lengths(self, w: Variables, state: State) -> Lengths:
        """Return what the method sends, in however many bytes."""
        return self.method.lengths(w, state)

    def anew(self, w: Variables, state: State) -> State:
        """Return the state with which the method goes on over other links."""
        return self.method.anew(w, state)

    def step(
        self, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Do the step of the method."""
        return self.method.step(task, k, w, state)

    def defect(
        self, k: int, w_next: Variables, w: Variables, state: State
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Return the invariants of the method, which hold for whatever keeps the agents' mean."""
        return self.method.defect(k, w_next, w, state)


def relayed(
    step: Rounds[T], exchange: Callable[[Outgoing], Rounds[tuple[Tensor, ...]]]
) -> Rounds[T]:
    """Run ``step``, answering each of its rounds by what ``exchange`` makes of it."""
    averaged = None
    while True:
        try:
            outgoing = step.send(averaged)
        except StopIteration as end:
            result: T = end.value
            return result
        averaged = yield from exchange(outgoing)
