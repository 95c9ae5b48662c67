"""The life of one agent: the one place where the mathematics and the network meet."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sundsbo_mpi.comm.agreement import jointly
from sundsbo_mpi.diagnosis.health import Health
from sundsbo_mpi.outgoing import nothing
from sundsbo_mpi.ranks.control import GO_ON, SAVE, Control, Stop, stop_in

if TYPE_CHECKING:
    from sundsbo_mpi.clock import Clock
    from sundsbo_mpi.comm.gossip import Gossip
    from sundsbo_mpi.comm.progress import Progress
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.composition import Algorithm, State
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Rounds
    from sundsbo_mpi.tasks.base import Task


def answer(
    step: Rounds[tuple[Variables, State]],
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


class Position(NamedTuple):
    """Where an agent stands between two iterations."""

    done: int
    """Iterations done."""
    w: Variables
    state: State
    previous: Variables | None = None
    """The w before the last iteration; None where it was undone, another process did it, or the
    agent has gone on."""


class End(NamedTuple):
    """How a run ended."""

    w: Variables
    """The agent's final variables."""
    iterations: int
    """Iterations done."""
    stop: Stop | None
    """Why there are fewer than were asked for."""


class Observer:
    """Hears of an agent's iterations; this one does nothing about them."""

    def stand(self, at: Position) -> None:
        """Hear where the agent could go on from, whatever becomes of the others; local.

        What only tells of the last iteration is left out, as in a position an iteration begins at.
        """

    def advance(self, done: int) -> None:
        """Hear that so many iterations are done; local, after each of them."""

    def evaluate(self, at: Position) -> None:
        """Measure: at 0, every ``eval_every`` iterations, and at the end; collective."""

    def wants_saving(self, _done: int) -> bool:
        """Tell whether a checkpoint belongs here, as all agents know without asking."""
        return False

    def save(self, _at: Position) -> float:
        """Keep a checkpoint; return the seconds that it took.  Collective."""
        return 0.0

    def note_skip(self, sentence: str, k: int) -> None:
        """Hear that all agents have undone iteration k; local."""


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
    skipping: bool = False
    """Whether an iteration that leads to numbers that are not finite is undone on all agents,
    rather than ending the run; it costs a wait for the slowest in every iteration."""
    numbered: tuple[int, int] | None = None
    """The agent's number and that of agents in the beginning; those of the tally unless given."""

    def run(self, observer: Observer, begin: Position | None = None) -> End:
        """Iterate k = 0 .. K-1, or from where it begins, or until the agents agree to stop.

        Collective.

        Raises:
            AgreedError: the method cannot work on this task.
            DivergedError: on all agents together, at an evaluation at the latest; a direction that
                is not finite is noticed ``Words.steps`` iterations later (one, of up to 32 agents),
                a point with the next direction, and so one later still.
        """
        if begin is None:
            self.clock.start()
            at = Position(0, *jointly(self.tally, lambda: self.algorithm.start(self.task)))
            observer.stand(at)
            observer.evaluate(at)
            self._save(observer, at)
        else:
            at = begin
            observer.stand(at)
        number, agents = self.numbered or (self.tally.agent, self.tally.agents)
        health = Health(number, agents, tuple(at.state.memory | at.w))
        while at.done < self.iterations:
            # Both names: either would keep what the last iteration leaves.
            at = reached = self._onward(at)
            due = self.evaluates(at.done + 1) or observer.wants_saving(at.done + 1)
            reached = self._iterate(at, health)
            if health.word == GO_ON:
                observer.stand(self._onward(reached))
            observer.advance(reached.done)
            agreed = self._agree(health, reached, due)
            at = self._judged(health, agreed, at, reached, observer)
            observer.stand(self._onward(at))
            stop = stop_in(agreed)
            self._look_back(observer, at, wanted=agreed == SAVE, stopping=stop is not None)
            if stop is not None and at.done < self.iterations:
                return End(at.w, at.done, stop)
        return End(at.w, at.done, None)

    def _iterate(self, at: Position, health: Health) -> Position:
        """Do one iteration; all its rounds mix with the same W_k."""
        k = at.done
        self.gossip.turn_to(k)
        step = self.algorithm.step(self.task, k, at.w, at.state)
        w, state = answer(step, self.gossip, self.clock, self.progress or nullcontext())
        with self.clock("gradient"):
            health.note_direction(k, state.D_hat)
        return Position(k + 1, w, state, at.w)

    def _onward(self, at: Position) -> Position:
        """Return what an iteration goes on from, without what only tells of the last one.

        The next iteration's vectors find room where those were, and the fewer places agents on one
        node touch in turn, the more of them its cache holds.  A state that may be come back to
        stays whole, as a checkpoint wants it.
        """
        state = at.state if self.skipping else at.state._replace(D_hat={})
        return Position(at.done, at.w, state)

    def evaluates(self, done: int) -> bool:
        """Whether an evaluation belongs after so many iterations."""
        return done % self.eval_every == 0 or done == self.iterations

    def _agree(self, health: Health, reached: Position, due: bool) -> int:
        """Return the agents' word at the end of an iteration, before what is ``due``; collective.

        Where agents meet anyway, at an evaluation, the words of the iteration itself are waited
        for: no numbers are recorded, or kept, that are not finite.
        """
        with self.clock("wait"):
            agreed = self.control.finish()
            due = due or agreed != GO_ON
            if not (due or self.skipping):
                self.control.start(health.word)
        if due or self.skipping:
            with self.clock("evaluation" if due else "wait"):
                health.note_point(reached.done - 1, reached.w)
                agreed = self.control.settle(health.word)
        return agreed

    def _judged(
        self, health: Health, agreed: int, before: Position, reached: Position, observer: Observer
    ) -> Position:
        """Return where the agents stand, by their word on the iteration.

        An iteration that is skipped is one that did not happen, but for its batch: as everything
        that an agent remembers is in its state, which is never changed in place, what the
        techniques conserve is conserved.
        """
        trouble = health.found(agreed)
        if trouble is None:
            return reached
        if not self.skipping:
            health.judge(agreed)
        observer.note_skip(health.skip(trouble), trouble.k)
        return reached._replace(w=before.w, state=before.state, previous=None)

    def _look_back(self, observer: Observer, at: Position, *, wanted: bool, stopping: bool) -> None:
        """Measure and keep what belongs here.

        A row that would be there anyway comes before the checkpoint, which so has it; the extra
        row of a run that stops comes after it, since time may be short.
        """
        evaluates = self.evaluates(at.done)
        last = at.done == self.iterations
        if evaluates:
            observer.evaluate(at)
        if wanted or stopping or last or observer.wants_saving(at.done):
            self._save(observer, at)
        if stopping and not evaluates:
            observer.evaluate(at)

    def _save(self, observer: Observer, at: Position) -> None:
        with self.clock("evaluation"):
            self.control.note_saved(observer.save(at))

    def close(self) -> None:
        """Cut the links to the other agents; collective."""
        if self.progress is not None:
            self.progress.close()
        self.control.close()
        self.gossip.close()
