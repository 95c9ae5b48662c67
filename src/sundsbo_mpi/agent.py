"""The life of one agent: the one place where the mathematics and the network meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.agreement import jointly
from sundsbo_mpi.errors import DivergedError

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.clock import Clock
    from sundsbo_mpi.comm.gossip import Gossip
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.composition import Algorithm, State
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Exchange
    from sundsbo_mpi.tasks.base import Task

HEALTHY = 2**62
"""The code of an agent whose numbers have all been finite."""


def answer(
    step: Exchange[tuple[Variables, State]], gossip: Gossip, clock: Clock
) -> tuple[Variables, State]:
    """Run one step, replacing every yield by the neighbourhood average of what it yields.

    What needs no answer is computed while the message travels.
    """
    averaged: Any = None
    while True:
        with clock("gradient"):
            try:
                outgoing = step.send(averaged)
            except StopIteration as done:
                result: tuple[Variables, State] = done.value
                return result
        gossip.post(outgoing)
        with clock("gradient"):
            outgoing.meanwhile()
        averaged = gossip.collect()


class Health:
    """Remembers where the agent's numbers first stopped being finite.

    Args:
        agent: The agent's rank.
        agents: Number of agents.
        variables: In the order in which an iteration evaluates their directions: bad numbers travel
            with a variable that moves before others, so the first variable is blamed first.
    """

    def __init__(self, agent: int, agents: int, variables: tuple[str, ...]) -> None:
        self._agent, self._agents, self._variables = agent, agents, variables
        self._code = HEALTHY

    def note_direction(self, k: int, D_hat: Variables) -> None:
        """Look at the agent's own directions of iteration k, from before any mixing."""
        self._note(2 * k, D_hat)

    def note_point(self, k: int, w: Variables) -> None:
        """Look at the point to which iteration k has led; a direction of k is blamed first."""
        self._note(2 * k + 1, w)

    def _note(self, moment: int, tensors: Variables) -> None:
        for place, v in enumerate(self._variables):
            if self._code == HEALTHY and v in tensors and not _finite(tensors[v]):
                self._code = (moment * len(self._variables) + place) * self._agents + self._agent

    def check(self, tally: Tally) -> None:
        """Agree on whether to go on; collective.

        Raises:
            DivergedError: on all agents, if any has met a number that is not finite.
        """
        code = tally.smallest(self._code)
        if code == HEALTHY:
            return
        code, agent = divmod(code, self._agents)
        moment, place = divmod(code, len(self._variables))
        k, is_point = divmod(moment, 2)
        v = self._variables[place]
        what = f"{v} itself" if is_point else f"the direction of {v}"
        raise DivergedError(
            f"diverged: {what} on agent {agent} was first not finite in iteration {k}; smaller "
            "steps (algorithm.step_x, step_y and so on) may help."
        )


def _finite(v: Tensor) -> bool:
    # A sum over a tensor that holds NaN or infinity is one of the two; it is cheaper than a mask.
    return bool(v.sum().isfinite()) or bool(v.isfinite().all())


@dataclass(frozen=True)
class Agent:
    """One agent: its problem, its method, and its links to the others."""

    task: Task
    algorithm: Algorithm
    gossip: Gossip
    tally: Tally
    clock: Clock
    iterations: int
    eval_every: int

    def run(
        self,
        evaluate: Callable[[int, Variables, Variables, State], None],
        advance: Callable[[int], None],
    ) -> Variables:
        """Iterate k = 0 .. K-1 and return the agent's final variables; collective.

        Args:
            evaluate: Called with (iterations done, w, the w before the last iteration, state) at
                0, every ``eval_every`` iterations, and at K.
            advance: Called with the iterations done after each of them; local.

        Raises:
            AgreedError: the method cannot work on this task.
            DivergedError: on all agents together, at the evaluation after the fact.
        """
        self.clock.start()
        w, state = jointly(self.tally, lambda: self.algorithm.start(self.task))
        health = Health(self.tally.agent, self.tally.agents, tuple(state.D_hat | w))
        evaluate(0, w, w, state)
        for k in range(self.iterations):
            previous = w
            self.gossip.turn_to(k)  # all rounds of an iteration mix with the same W_k
            step = self.algorithm.step(self.task, k, w, state)
            w, state = answer(step, self.gossip, self.clock)
            with self.clock("gradient"):
                health.note_direction(k, state.D_hat)
            done = k + 1
            advance(done)
            if done % self.eval_every == 0 or done == self.iterations:
                with self.clock("evaluation"):
                    health.note_point(k, w)
                    health.check(self.tally)
                evaluate(done, w, previous, state)
        return w
