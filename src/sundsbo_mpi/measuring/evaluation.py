"""One evaluation of a run: everything that goes into one row of the run file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sundsbo_mpi.comm.agreement import jointly
from sundsbo_mpi.measuring import metrics
from sundsbo_mpi.measuring.stationarity import UNKNOWN, Stationarity, stationarity
from sundsbo_mpi.runfile import Row
from sundsbo_mpi.runfile.schema import COSTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sundsbo_mpi.agent import Agent, Position
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.tasks.base import Penalty


class Measured(NamedTuple):
    """What the agents measure together."""

    task: dict[str, float]
    consensus: dict[str, float]
    invariant: dict[str, float]
    stationarity: Stationarity


@dataclass(frozen=True)
class Evaluation:
    """Measures an agent together with all others and hands rank 0 the row; calling is collective.

    Args:
        agent: The agent of this rank.
        hosts: For every rank a number of its host.
        with_stationarity: Whether to measure ‖∇Ψ_μ‖², which takes many full gradients.
        record: What all ranks do with a row, which only rank 0 has, and their variables.
        private: The coordinates of x that are this agent's alone, if x is not sent.
    """

    agent: Agent
    hosts: tuple[int, ...]
    with_stationarity: bool
    record: Callable[[Row | None, Variables], None]
    private: slice | None = None
    whole: bool = True
    """Whether no agent was lost, so that what the task knows of the solution holds."""

    def __call__(self, at: Position) -> None:
        """Measure where the agent stands."""
        clock, tally = self.agent.clock, self.agent.tally
        elapsed, wall = clock.training, clock.wall
        with clock("evaluation"):
            costs = tally.stack(self._costs())
            edge_bytes = tally.gather(self.agent.gossip.traffic.bytes_to)
            measured = self._measure(at)
            row = None
            if costs is not None and edge_bytes is not None:
                row = Row(
                    iteration=at.done,
                    elapsed_s=elapsed,
                    wall_s=wall,
                    task=measured.task,
                    consensus=measured.consensus,
                    invariant=measured.invariant,
                    agents=dict(zip(COSTS, costs.T, strict=True)),
                    edge_bytes=np.concatenate(edge_bytes),
                    stationarity=measured.stationarity.measure,
                    stationarity_residual=measured.stationarity.residual,
                    lipschitz=measured.stationarity.lipschitz,
                )
            self.record(row, at.w)

    def _measure(self, at: Position) -> Measured:
        tally, task, algorithm = self.agent.tally, self.agent.task, self.agent.algorithm
        w, w_bar = at.w, metrics.average(tally, at.w, self.private)
        penalty = algorithm.penalty(at.done)
        reported = metrics.report(tally, task, w_bar, w)
        if hasattr(task, "reference"):
            given = penalty or (None, None)
            known = jointly(tally, lambda: task.reference(*given))
            errors = metrics.reference_errors(known, w_bar)
            reported |= errors if self.whole else dict.fromkeys(errors, math.nan)
        invariant = dict.fromkeys(w, math.nan)
        if at.previous is not None:
            defects = algorithm.defect(at.done - 1, w, at.previous, at.state)
            invariant |= metrics.invariants(tally, defects)
        consensus = metrics.consensus(tally, w, w_bar, self.private)
        return Measured(reported, consensus, invariant, self._stationarity(w_bar, penalty))

    def _stationarity(self, w_bar: Variables, penalty: Penalty | None) -> Stationarity:
        task = self.agent.task
        if not self.with_stationarity or penalty is None or not hasattr(task, "everything"):
            return UNKNOWN
        return stationarity(self.agent.tally, task, w_bar, penalty)

    def sent(self) -> tuple[int, int]:
        """Return the bytes sent to agents on other nodes, and on this one, since the beginning."""
        traffic, here = self.agent.gossip.traffic, self.hosts[self.agent.tally.agent]
        remote = np.array([self.hosts[j] != here for j in self.agent.gossip.neighbours], dtype=bool)
        now, earlier = traffic.bytes_to - traffic.begun, traffic.earlier
        return earlier.network + int(now[remote].sum()), earlier.shared + int(now[~remote].sum())

    def _costs(self) -> NDArray[np.float64]:
        """What this agent has spent since the start of the run, in the order of COSTS."""
        traffic, clock = self.agent.gossip.traffic, self.agent.clock
        network, shared = self.sent()
        control = self.agent.control
        spent: dict[str, float] = {
            "bytes_payload": network + shared,
            "bytes_network": network,
            "bytes_shared": shared,
            "messages": traffic.messages,
            "rounds": traffic.rounds,
            "bytes_control": control.bytes,
            "rounds_control": control.turns,
        }
        spent |= {f"seconds_{phase}": seconds for phase, seconds in clock.seconds.items()}
        return np.array([spent[name] for name in COSTS], dtype=np.float64)
