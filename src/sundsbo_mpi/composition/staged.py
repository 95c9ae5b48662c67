"""Methods whose variables move one after the other (Gauss-Seidel) instead of all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.composition.algorithm import Lengths, Oracles, State
from sundsbo_mpi.composition.composed import Composed
from sundsbo_mpi.composition.loops import Loop
from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Rounds
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class Staged:
    """A method that is several in a row: each moves its own variables, from where the last led.

    Every stage has techniques for variables that no other stage has, begins at the same point and
    evaluates its direction at the newest values of all variables, on the one batch of the
    iteration.  A stage cannot send before the last one has received, so rounds add up.  D̂ and the
    memories are in the order of the stages.
    """

    stages: tuple[Composed | Loop, ...]

    @property
    def lambda_min(self) -> float:
        """The strictest bound among the stages."""
        return max(stage.lambda_min for stage in self.stages)

    @property
    def rounds(self) -> int:
        """Communication rounds per iteration: nothing is fused across stages."""
        return sum(stage.rounds for stage in self.stages)

    @property
    def vectors(self) -> int:
        """Vectors sent to each neighbour per iteration, each as long as its variable."""
        return sum(stage.vectors for stage in self.stages)

    @property
    def oracles(self) -> Oracles:
        """What all stages evaluate; nothing is shared between them."""
        return Oracles(*map(sum, zip(*(stage.oracles for stage in self.stages), strict=True)))

    @property
    def penalty(self) -> Callable[[int], Penalty | None]:
        """The penalty of the stages."""
        return self.stages[0].penalty

    def start(self, task: Task) -> tuple[Variables, State]:
        """Return w^0 and empty memories."""
        started = [stage.start(task) for stage in self.stages]
        w, first = started[0]
        estimates = tuple(state.estimate for _, state in started)
        memory = {v: m for _, state in started for v, m in state.memory.items()}
        D_hat = {v: first.D_hat[v] for v in memory}
        return w, State(estimates, memory, D_hat)

    def lengths(self, w: Variables, state: State) -> Lengths:
        """Return what the stages send, one after the other."""
        return [sent for stage in self.stages for sent in stage.lengths(w, state)]

    def anew(self, w: Variables, state: State) -> State:
        """Return the state with which every stage goes on over other links."""
        memory = {v: m for s in self.stages for v, m in s.anew(w, state).memory.items()}
        return state._replace(memory=memory)

    def step(
        self, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Let every stage do its step; one batch serves them all."""
        xi = task.sample(k)
        estimates: list[Any] = []
        memory: dict[str, Any] = {}
        D_hat: Variables = {}
        for stage, estimate in zip(self.stages, state.estimate, strict=True):
            before = state._replace(estimate=estimate)
            w, after = yield from stage.step_on(xi, task, k, w, before)
            estimates.append(after.estimate)
            memory |= after.memory
            D_hat |= after.D_hat
        return w, State(tuple(estimates), memory, D_hat)

    def defect(
        self, k: int, w_next: Variables, w: Variables, state: State
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Ask the stages for the invariants of their variables."""
        found: dict[str, tuple[Tensor, Tensor]] = {}
        for stage in self.stages:
            found |= stage.defect(k, w_next, w, state)
        return found
