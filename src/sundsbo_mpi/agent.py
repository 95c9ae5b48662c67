"""The life of one agent: the one place where the mathematics and the network meet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sundsbo_mpi.agreement import jointly
from sundsbo_mpi.control import GO_ON, Control, Stop
from sundsbo_mpi.health import Health
from sundsbo_mpi.outgoing import nothing

if TYPE_CHECKING:
    from sundsbo_mpi.clock import Clock
    from sundsbo_mpi.comm.gossip import Gossip
    from sundsbo_mpi.comm.progress import Progress
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.composition import Algorithm, State
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Exchange
    from sundsbo_mpi.tasks.base import Task


def answer(
    step: Exchange[tuple[Variables, State]],
    gossip: Gossip,
    clock: Clock,
    moving: AbstractContextManager[object],
) -> tuple[Variables, State]:
    """Run one step, replacing every yield by the neighbourhood average of what it yields.

    What needs no answer is computed while the message travels, inside ``moving``.
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
        if outgoing.meanwhile is not nothing:
            with clock("gradient"), moving:
                outgoing.meanwhile()
        averaged = gossip.collect()


class End(NamedTuple):
    """How a run ended."""

    w: Variables
    """The agent's final variables."""
    iterations: int
    """Iterations done."""
    stop: Stop | None
    """Why there are fewer than were asked for."""


@dataclass(frozen=True)
class Agent:
    """One agent: its problem, its method, and its links to the others."""

    task: Task
    algorithm: Algorithm
    gossip: Gossip
    tally: Tally
    control: Control
    clock: Clock
    iterations: int
    eval_every: int
    progress: Progress | None = None
    """Keeps messages moving while something is computed, where that helps."""

    def run(
        self,
        evaluate: Callable[[int, Variables, Variables, State], None],
        advance: Callable[[int], None],
    ) -> End:
        """Iterate k = 0 .. K-1, or until the agents agree to stop; collective.

        Args:
            evaluate: Called with (iterations done, w, the w before the last iteration, state) at
                0, every ``eval_every`` iterations, and at the end.
            advance: Called with the iterations done after each of them; local.

        Raises:
            AgreedError: the method cannot work on this task.
            DivergedError: on all agents together, at an evaluation at the latest; a direction that
                is not finite is noticed an iteration later at most, a point with the next
                direction, and so up to two iterations later.
        """
        self.clock.start()
        moving = self.progress or nullcontext()
        w, state = jointly(self.tally, lambda: self.algorithm.start(self.task))
        health = Health(self.tally.agent, self.tally.agents, tuple(state.D_hat | w))
        evaluate(0, w, w, state)
        for k in range(self.iterations):
            previous = w
            self.gossip.turn_to(k)  # all rounds of an iteration mix with the same W_k
            step = self.algorithm.step(self.task, k, w, state)
            w, state = answer(step, self.gossip, self.clock, moving)
            with self.clock("gradient"):
                health.note_direction(k, state.D_hat)
            done = k + 1
            advance(done)
            due = done % self.eval_every == 0 or done == self.iterations
            agreed = self._agree(health, k, w, due)
            if due or agreed != GO_ON:
                evaluate(done, w, previous, state)
            if agreed != GO_ON and done < self.iterations:
                return End(w, done, Stop(agreed))
        return End(w, self.iterations, None)

    def _agree(self, health: Health, k: int, w: Variables, due: bool) -> int:
        """Return the agents' word at the end of iteration k, before what is ``due``; collective.

        Where agents meet anyway, at an evaluation, the word of iteration k itself is waited for:
        no numbers are recorded that are not finite.
        """
        with self.clock("wait"):
            agreed = self.control.finish()
            due = due or agreed != GO_ON
            if not due:
                self.control.start(health.word)
        if due:
            with self.clock("evaluation"):
                health.note_point(k, w)
                self.control.start(health.word)
                agreed = self.control.finish()
        health.judge(agreed)
        return agreed

    def close(self) -> None:
        """Cut the links to the other agents; collective."""
        if self.progress is not None:
            self.progress.close()
        self.gossip.close()
