"""Several rounds of gossip wherever a method has one: any method with W^m in place of W."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sundsbo_mpi.composition.algorithm import Algorithm, Oracles, Penalty, State
from sundsbo_mpi.composition.techniques import Exchange, T
from sundsbo_mpi.options import require_integer

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class MultiStep:
    """A method that averages m times whatever it would average once, and so mixes with W^m.

    Where W changes, all rounds of iteration k mix with W_k.

    Args:
        method: The method.
        steps: The number m of averages, at least 1.

    Raises:
        UsageError: m is less than 1.
    """

    method: Algorithm
    steps: int

    def __post_init__(self) -> None:
        """Refuse a number of steps that is none."""
        require_integer("algorithm.gossip_steps", self.steps, 1)

    @property
    def lambda_min(self) -> float:
        """What the method's bound on the eigenvalues of W^m, λ^m, says of the λ of W."""
        bound = self.method.lambda_min
        if math.isinf(bound):
            return bound
        # An even power has no eigenvalue below zero, and no method asks for more.
        return -1.0 if self.steps % 2 == 0 else -((-bound) ** (1 / self.steps))

    @property
    def rounds(self) -> int:
        """Communication rounds per iteration, m times those of the method."""
        return self.steps * self.method.rounds

    @property
    def vectors(self) -> int:
        """Vectors sent to each neighbour per iteration, m times those of the method."""
        return self.steps * self.method.vectors

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

    def step(
        self, task: Task, k: int, w: Variables, state: State
    ) -> Exchange[tuple[Variables, State]]:
        """Do the method's step with every yield repeated."""
        return (yield from _repeated(self.method.step(task, k, w, state), self.steps))

    def defect(
        self, k: int, w_next: Variables, w: Variables, state: State
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Return the invariants of the method, which hold for any doubly stochastic matrix."""
        return self.method.defect(k, w_next, w, state)


def _repeated(step: Exchange[T], times: int) -> Exchange[T]:
    """Yield what ``step`` yields, then its average, and so on, and hand the last average back."""
    averaged = None
    while True:
        try:
            outgoing = step.send(averaged)
        except StopIteration as end:
            result: T = end.value
            return result
        for _ in range(times):
            averaged = yield outgoing
            outgoing = outgoing._replace(tensors=averaged)
