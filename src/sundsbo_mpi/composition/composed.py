"""How a method is composed: a direction, an estimator, and one technique for every variable.

One iteration of one agent is local (Step I) up to the ``yield`` of its techniques (Steps II and
III); the loop over the iterations and the network live elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.composition.algorithm import Lengths, Oracles, State, no_penalty
from sundsbo_mpi.composition.fusion import lockstep
from sundsbo_mpi.composition.techniques import Rounds, Technique
from sundsbo_mpi.outgoing import nothing
from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Estimator, Variables
    from sundsbo_mpi.composition.schedules import Schedule
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class Composed:
    """A method that is a direction, an estimator and one technique per variable.

    A variable of ``begin`` without a technique is neither changed nor sent, and needs no direction.
    """

    begin: Callable[[Task], Variables]
    direction: Callable[[Task, Variables, Any, int], Variables]
    estimator: Estimator
    techniques: Mapping[str, Technique]
    step_sizes: Mapping[str, Schedule]
    price: Oracles
    """Of one evaluation of the direction."""
    penalty: Callable[[int], Penalty | None] = no_penalty
    matrices: bool = False
    """Whether it sends derivatives along x row by row, which tell of every agent's coordinates."""

    @property
    def lambda_min(self) -> float:
        """The strictest bound among the techniques."""
        return max(t.lambda_min for t in self.techniques.values())

    @property
    def rounds(self) -> int:
        """Communication rounds per iteration: the techniques run in lockstep."""
        return max(t.rounds for t in self.techniques.values())

    @property
    def vectors(self) -> int:
        """Vectors sent to each neighbour per iteration, each as long as its variable."""
        return sum(t.vectors for t in self.techniques.values())

    @property
    def oracles(self) -> Oracles:
        """The price of the direction, as often as the estimator evaluates it."""
        return self.price.times(self.estimator.evaluations)

    def start(self, task: Task) -> tuple[Variables, State]:
        """Return w^0 and empty memories."""
        w = self.begin(task)
        D_hat = {v: s.new_zeros(s.shape) for v, s in w.items()}
        return w, self.anew(w, State(self.estimator.start(w), {}, D_hat))

    def lengths(self, w: Variables, _state: State) -> Lengths:
        """Return what the techniques send: they start together, each as much in all its rounds."""
        return [
            [
                len(w[v])
                for v, technique in self.techniques.items()
                if turn < technique.rounds
                for _ in range(technique.vectors // technique.rounds)
            ]
            for turn in range(self.rounds)
        ]

    def anew(self, w: Variables, state: State) -> State:
        """Return the state with the techniques' memories as they are before a first iteration."""
        return state._replace(memory={v: t.start(w[v]) for v, t in self.techniques.items()})

    def step(
        self, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Step I is local; Steps II and III yield what must travel."""
        return (yield from self.step_on(task.sample(k), task, k, w, state))

    def step_on(
        self, xi: Any, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Do ``step`` on the batch ``xi``."""
        estimated: tuple[Variables, Any] | None = None

        def estimate() -> tuple[Variables, Any]:  # Step I, once, when a technique first asks for it
            nonlocal estimated
            if estimated is None:
                estimated = self.estimator.update(
                    lambda j, at: self.direction(task, at, xi, j), k, w, state.estimate
                )
            return estimated

        def gradient(variable: str) -> Tensor:
            return estimate()[0][variable]

        def left_to_do() -> Callable[[], object]:
            return estimate if estimated is None else nothing

        moved, memory = yield from lockstep(
            {
                v: t.step(w[v], partial(gradient, v), self.step_sizes[v](k), state.memory[v])
                for v, t in self.techniques.items()
            },
            left_to_do,
        )
        D_hat, remembered = estimate()
        return w | moved, State(remembered, memory, D_hat)

    def defect(
        self, k: int, w_next: Variables, w: Variables, state: State
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Ask each variable's technique for its invariant."""
        return {
            v: t.defect(w_next[v], w[v], self.step_sizes[v](k), state.D_hat[v], state.memory[v])
            for v, t in self.techniques.items()
        }
