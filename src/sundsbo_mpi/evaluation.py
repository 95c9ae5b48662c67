"""One evaluation of a run: everything that goes into one row of the run file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi import metrics
from sundsbo_mpi.clock import PHASES
from sundsbo_mpi.runfile import Row
from sundsbo_mpi.stationarity import UNKNOWN, Stationarity, stationarity

if TYPE_CHECKING:
    from sundsbo_mpi.agent import Agent
    from sundsbo_mpi.composition import Penalty, State
    from sundsbo_mpi.estimators import Variables

COUNTS = ("bytes_payload", "bytes_network", "bytes_shared", "messages", "rounds")


@dataclass(frozen=True)
class Evaluation:
    """Measures an agent together with all others and hands rank 0 the row; calling is collective.

    Args:
        agent: The agent of this rank.
        remote: For each of its neighbours whether it is on another host.
        with_stationarity: Whether to measure ‖∇Ψ_μ‖², which takes many full gradients.
        record: What all ranks do with a row, which only rank 0 has, and their variables.
    """

    agent: Agent
    remote: np.ndarray
    with_stationarity: bool
    record: Callable[[Row | None, Variables], None]

    def __call__(self, done: int, w: Variables, previous: Variables, state: State) -> None:
        """Measure after ``done`` iterations, the last of which led from ``previous`` to ``w``."""
        clock = self.agent.clock
        elapsed, wall = clock.training, clock.wall
        with clock("evaluation"):
            costs = self.agent.tally.stack(self._costs())
            edge_bytes = self.agent.tally.gather(self.agent.gossip.traffic.bytes_to)
            measured = self._measure(done, w, previous, state)
            row = None
            if costs is not None and edge_bytes is not None:
                names = (*COUNTS, *(f"seconds_{phase}" for phase in PHASES))
                row = Row(
                    iteration=done,
                    elapsed_s=elapsed,
                    wall_s=wall,
                    agents=dict(zip(names, costs.T, strict=True)),
                    edge_bytes=np.concatenate(edge_bytes),
                    **measured,
                )
            self.record(row, w)

    def _measure(
        self, done: int, w: Variables, previous: Variables, state: State
    ) -> dict[str, Any]:
        tally, task, algorithm = self.agent.tally, self.agent.task, self.agent.algorithm
        w_bar = metrics.average(tally, w)
        penalty = algorithm.penalty(done)
        reported = metrics.report(tally, task, w_bar, w)
        if penalty is not None and hasattr(task, "reference"):
            reported |= metrics.reference_errors(task.reference(*penalty), w_bar)
        last = done - 1
        measured = self._stationarity(w_bar, penalty)
        return {
            "task": reported,
            "consensus": metrics.consensus(tally, w, w_bar),
            "invariant": metrics.invariants(tally, algorithm.defect(last, w, previous, state))
            if done
            else dict.fromkeys(w, math.nan),
            "stationarity": measured.measure,
            "stationarity_residual": measured.residual,
            "lipschitz": measured.lipschitz,
        }

    def _stationarity(self, w_bar: Variables, penalty: Penalty | None) -> Stationarity:
        task = self.agent.task
        if not self.with_stationarity or penalty is None or not hasattr(task, "everything"):
            return UNKNOWN
        return stationarity(self.agent.tally, task, w_bar, penalty)

    def _costs(self) -> np.ndarray:
        """COUNTS and the seconds of PHASES, since the start of the run."""
        traffic, clock = self.agent.gossip.traffic, self.agent.clock
        network = traffic.bytes_to[self.remote].sum()
        payload = traffic.bytes_to.sum()
        counts = (payload, network, payload - network, traffic.messages, traffic.rounds)
        return np.array([*counts, *(clock.seconds[phase] for phase in PHASES)], dtype=np.float64)
