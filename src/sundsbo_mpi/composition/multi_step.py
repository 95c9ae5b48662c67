"""Several rounds of gossip wherever a method has one: any method with W^m in place of W."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sundsbo_mpi.composition.wrapped import Wrapped, relayed
from sundsbo_mpi.options import require_integer
from sundsbo_mpi.outgoing import nothing

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.algorithm import Lengths, State
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Rounds
    from sundsbo_mpi.outgoing import Outgoing
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class MultiStep(Wrapped):
    """A method that averages m times whatever it would average once, and so mixes with W^m.

    Where W changes, all rounds of iteration k mix with W_k.

    Args:
        method: The method.
        steps: The number m of averages, at least 1.

    Raises:
        UsageError: m is less than 1.
    """

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

    def lengths(self, w: Variables, state: State) -> Lengths:
        """Return what the method sends, m times in a row."""
        once = self.method.lengths(w, state)
        return [sent for sent in once for _ in range(self.steps)]

    def step(
        self, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Do the method's step with every yield repeated."""
        return (yield from relayed(self.method.step(task, k, w, state), self._average))

    def _average(self, outgoing: Outgoing) -> Rounds[tuple[Tensor, ...]]:
        """Yield what is sent, then its average, and so on, and return the last average."""
        for _ in range(self.steps):
            outgoing = outgoing._replace(parts=(yield outgoing), meanwhile=nothing)
        return outgoing.tensors
