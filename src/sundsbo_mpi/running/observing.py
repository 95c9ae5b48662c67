"""What follows the iterations of a run: rows, checkpoints, a timeline, and words to the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sundsbo_mpi.agent import Agent, Observer, Position
from sundsbo_mpi.algorithms.safety import large_gamma
from sundsbo_mpi.checkpoint.moment import Moment, Spent
from sundsbo_mpi.comm.agreement import on_root
from sundsbo_mpi.comm.gossip import Earlier
from sundsbo_mpi.measuring.metrics import assembled
from sundsbo_mpi.runfile import TRANSPORT

if TYPE_CHECKING:
    import numpy as np

    from sundsbo_mpi.checkpoint import Saver
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.diagnosis.causes import Diagnosis
    from sundsbo_mpi.diagnosis.health import NotFiniteError
    from sundsbo_mpi.measuring.evaluation import Evaluation
    from sundsbo_mpi.ranks.watchdog import Watchdog
    from sundsbo_mpi.runfile import Row
    from sundsbo_mpi.running.progress import Reporter
    from sundsbo_mpi.running.recording import Recorder
    from sundsbo_mpi.tracing import Tracer


@dataclass(frozen=True)
class Recording:
    """What all ranks do with a row, which only rank 0 has; calling is collective.

    ``recorder`` is there on rank 0 alone.
    """

    agent: Agent
    recorder: Recorder | None
    reporter: Reporter
    diagnosis: Diagnosis
    tracer: Tracer | None
    note_path: Callable[[str], None]
    """Told on all ranks where the run file is."""

    def __call__(self, row: Row | None, w: Variables) -> None:
        """Write the row on rank 0, so that all leave together if it cannot be written."""

        def write() -> str:
            assert self.recorder is not None
            assert row is not None
            if self.recorder.path is None:
                self.recorder.start(row, w)
                lipschitz = getattr(self.agent.task, "lipschitz", row.lipschitz)
                if remark := large_gamma(self.agent.algorithm.penalty(0), lipschitz):
                    self.reporter.note(f"outside the theorems' assumptions: {remark}")
            self.recorder.row(row)
            if said := self.diagnosis.note(row):
                self.reporter.note(said)
            return str(self.recorder.path)

        self.note_path(on_root(self.agent.tally, write))
        if self.tracer is not None:
            self.tracer.write()

    def event(self, iteration: int, kind: str, sentence: str) -> None:
        """Tell what has happened, and write it down; local."""
        self.reporter.note(sentence)
        if self.recorder is not None:
            self.recorder.event(iteration, kind, sentence)


@dataclass
class RunObserver(Observer):
    """The observer of a run.

    Args:
        agent: The agent that is observed.
        numbers: Those that the present agents had in the beginning.
        evaluation: What measures.
        saver: What keeps checkpoints, if any are kept.
        recording: Who is told of what happens.
        watchdog: Told of every iteration.
        stands: Told where the agent stands.
    """

    agent: Agent
    numbers: Sequence[int]
    evaluation: Evaluation
    saver: Saver | None
    recording: Recording
    watchdog: Watchdog
    stands: Callable[[Position], None]
    told: int = field(init=False)
    """How many of the notes on the links are told: a run begins with those that it has."""

    def __post_init__(self) -> None:
        """Count what was found before the first exchange."""
        self.told = len(self.agent.gossip.network.notes)

    def stand(self, at: Position) -> None:
        """Pass it on."""
        self.stands(at)

    def advance(self, done: int) -> None:
        """Show how far the run is, and tell what has come out about the links."""
        self.watchdog.rearm(done)
        self.recording.reporter.advance(done)
        notes = self.agent.gossip.network.notes
        for sentence in notes[self.told :]:
            self.recording.event(done, TRANSPORT, sentence)
        self.told = len(notes)

    def evaluate(self, at: Position) -> None:
        """Measure and record a row."""
        with self.watchdog.paused():
            self.evaluation(at)

    def wants_saving(self, done: int) -> bool:
        """Ask the saver."""
        return self.saver is not None and self.saver.due(done)

    def save(self, at: Position) -> float:
        """Keep a checkpoint, if any are kept."""
        if self.saver is None:
            return 0.0
        with self.watchdog.paused():
            moment = Moment(at, spent(self.agent, self.numbers, self.evaluation.sent()))
            return self.saver.save(moment)

    def explained(self, error: NotFiniteError) -> NotFiniteError:
        """Return the error with its likely causes; collective."""
        tally = self.agent.tally
        return self.recording.diagnosis.explain(error, self.numbers[tally.agent], tally)

    def note_skip(self, sentence: str, k: int) -> None:
        """Tell it, and write it down."""
        self.recording.event(k, "skipped", sentence)


def spent(agent: Agent, numbers: Sequence[int], sent: tuple[int, int]) -> Spent:
    """Return what an agent has spent so far.

    Args:
        agent: The agent.
        numbers: Those that the present agents had in the beginning.
        sent: The bytes to agents on other nodes, and on the same, see ``Evaluation.sent``.
    """
    traffic, named = agent.gossip.traffic, [str(numbers[j]) for j in agent.gossip.neighbours]
    now = dict(zip(named, traffic.bytes_to.tolist(), strict=True))
    return Spent(
        rounds=traffic.rounds,
        messages=traffic.messages,
        words=agent.control.turns,
        wall=agent.clock.wall,
        network=sent[0],
        shared=sent[1],
        saving=agent.control.saving,
        seconds=dict(agent.clock.seconds),
        bytes_to={**traffic.earlier.bytes_to, **now},
        control=agent.control.bytes,
    )


def take_up(agent: Agent, before: Spent, numbers: Sequence[int]) -> None:
    """Let an agent count on from what it had spent before."""
    traffic = agent.gossip.traffic
    traffic.rounds, traffic.messages = before.rounds, before.messages
    named = [str(numbers[j]) for j in agent.gossip.neighbours]
    traffic.bytes_to[:] = traffic.begun[:] = [before.bytes_to.get(name, 0) for name in named]
    traffic.earlier = Earlier(before.network, before.shared, before.bytes_to)
    agent.control.turns, agent.control.bytes = before.words, before.control
    agent.control.note_saved(before.saving)
    agent.clock.start(before.wall)
    agent.clock.seconds |= {name: before.seconds.get(name, 0.0) for name in agent.clock.seconds}


def keep_final(
    tally: Tally, recorder: Recorder | None, w: Variables, private: slice | None
) -> None:
    """Write the agents' last iterates on rank 0, of a ``private`` x the whole; collective.

    Raises:
        AgreedError: they cannot be written.
    """
    whole = {} if private is None else {"x": assembled(tally, w["x"], private)}
    for v, s in (w | whole).items():
        everyone = tally.stack(s.numpy(force=True))

        def write(v: str = v, everyone: np.ndarray | None = everyone) -> None:
            assert recorder is not None
            assert everyone is not None
            recorder.final(v, everyone)

        on_root(tally, write)
