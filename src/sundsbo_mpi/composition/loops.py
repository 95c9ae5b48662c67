"""Inner loops: a stage that is repeated within an iteration, every time on a fresh batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sundsbo_mpi.composition.algorithm import Lengths, Oracles, State
from sundsbo_mpi.composition.composed import Composed
from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Rounds
    from sundsbo_mpi.tasks.base import Task


class Looped(NamedTuple):
    """What a loop remembers of a variable."""

    technique: Any
    """Memory of the variable's technique."""
    s: Tensor
    """The variable before the last repetition."""


@dataclass(frozen=True)
class Loop:
    """A stage of ``staged.Staged`` that does its step ``repeats`` times in a row.

    Repetition t takes the batch of draw ``first_draw + t`` of the iteration, the step size of the
    iteration, and the newest values of all variables.  A stage that is no loop takes draw 0.
    """

    stage: Composed
    repeats: int
    first_draw: int = 1
    afresh: bool = False
    """Whether the techniques forget, at the start of an iteration, what they remembered."""

    @property
    def lambda_min(self) -> float:
        """The bound of the stage."""
        return self.stage.lambda_min

    @property
    def rounds(self) -> int:
        """Communication rounds per iteration, of all repetitions."""
        return self.repeats * self.stage.rounds

    @property
    def vectors(self) -> int:
        """Vectors sent to each neighbour per iteration, by all repetitions."""
        return self.repeats * self.stage.vectors

    @property
    def oracles(self) -> Oracles:
        """What all repetitions evaluate."""
        return self.stage.oracles.times(self.repeats)

    @property
    def penalty(self) -> Callable[[int], Penalty | None]:
        """The penalty of the stage."""
        return self.stage.penalty

    def start(self, task: Task) -> tuple[Variables, State]:
        """Return w^0 and empty memories."""
        w, state = self.stage.start(task)
        return w, self.anew(w, state)

    def lengths(self, w: Variables, state: State) -> Lengths:
        """Return what all repetitions send."""
        return self.repeats * self.stage.lengths(w, state)

    def anew(self, w: Variables, state: State) -> State:
        """Return the state with the techniques' memories as they are before a first iteration."""
        memory = self.stage.anew(w, state).memory
        return state._replace(memory={v: Looped(m, w[v]) for v, m in memory.items()})

    def step_on(
        self, _xi: Any, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Do all repetitions of iteration k; the batch of the other stages is not used."""
        memory = {
            v: t.start(w[v]) if self.afresh else state.memory[v].technique
            for v, t in self.stage.techniques.items()
        }
        before, inner = w, state._replace(memory=memory)
        for t in range(self.repeats):
            before = w
            xi = task.sample(k, self.first_draw + t)
            w, inner = yield from self.stage.step_on(xi, task, k, w, inner)
        looped = {v: Looped(m, before[v]) for v, m in inner.memory.items()}
        return w, inner._replace(memory=looped)

    def defect(
        self, k: int, w_next: Variables, _w: Variables, state: State
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Ask each variable's technique for the invariant of the last repetition."""
        own = {v: state.memory[v] for v in self.stage.techniques}
        before = {v: looped.s for v, looped in own.items()}
        inner = state._replace(memory={v: looped.technique for v, looped in own.items()})
        return self.stage.defect(k, w_next, before, inner)
