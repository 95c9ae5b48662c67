"""Decentralised training without a bilevel problem, on all samples merged: D-PSGD and GNSD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.algorithms.base import Horizon, MethodOptions, steps
from sundsbo_mpi.composition import Composed, Lengths, Oracles, State, no_penalty
from sundsbo_mpi.composition.directions import gradient, leaf
from sundsbo_mpi.composition.estimators import Variables, minibatch
from sundsbo_mpi.composition.schedules import Scheduled
from sundsbo_mpi.composition.techniques import Rounds, technique
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class SingleLevelOptions(MethodOptions):
    """The options of single-level methods; that of a variable which is not trained has no effect.

    Args:
        step_x: Step of x.
        step_y: Step of y.
    """

    step_x: Scheduled = 0.1
    step_y: Scheduled = 0.1


def trained_by(task: Task) -> tuple[str, ...]:
    """Return the variables that a task's single-level training moves; none where it has none."""
    if not hasattr(task, "single_level"):
        return ()
    return tuple(getattr(task, "single_level_variables", ()))


@dataclass(frozen=True)
class SingleLevel:
    """A method that descends on a task's ``single_level``; what else there is stays at its start.

    A vector is as long as the trained variables together; the gradient, of a loss on training and
    validation samples merged, counts as one of f and one of g.
    """

    of: Callable[[tuple[str, ...]], Composed]
    """The composition that moves given variables."""
    penalty: Callable[[int], Penalty | None] = no_penalty

    @property
    def lambda_min(self) -> float:
        """The bound of the technique."""
        return self.of(("y",)).lambda_min

    @property
    def rounds(self) -> int:
        """Communication rounds per iteration."""
        return self.of(("y",)).rounds

    @property
    def vectors(self) -> int:
        """Vectors sent to each neighbour per iteration, as long as what is trained."""
        return self.of(("y",)).vectors

    @property
    def oracles(self) -> Oracles:
        """One gradient of the merged loss."""
        return self.of(("y",)).oracles

    def start(self, task: Task) -> tuple[Variables, State]:
        """Return x^0, y^0 and empty memories of the variables that the task trains.

        Raises:
            UsageError: the task has no single-level training.
        """
        trained = trained_by(task)
        if not trained:
            raise UsageError(
                "the task has no single_level() and single_level_variables, so "
                "d-psgd and gnsd cannot train on it: take a bilevel method, or another task."
            )
        return self.of(trained).start(task)

    def lengths(self, w: Variables, state: State) -> Lengths:
        """Return what is sent of the trained variables."""
        return self.of(tuple(state.memory)).lengths(w, state)

    def anew(self, w: Variables, state: State) -> State:
        """Return the state with which the trained variables go on over other links."""
        return self.of(tuple(state.memory)).anew(w, state)

    def step(
        self, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Move the trained variables."""
        return self.of(tuple(state.memory)).step(task, k, w, state)

    def defect(
        self, k: int, w_next: Variables, w: Variables, state: State
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """Ask the technique for the invariant of the trained variables."""
        return self.of(tuple(state.memory)).defect(k, w_next, w, state)


def d_psgd(options: SingleLevelOptions, horizon: Horizon) -> SingleLevel:
    """D-PSGD: s^{k+1} = W s^k - a d^k, with d^k the gradient of ``single_level`` on the batch.

    Source: Lian, Zhang, Zhang, Hsieh, Zhang and Liu, 2017, arXiv 1705.09056.

    Differences from the source:
        1. None in the update; that training and validation samples are merged is the SUN-DSBO
           paper's comparison.
    """
    return _single_level(options, horizon, "dgd")


def gnsd(options: SingleLevelOptions, horizon: Horizon) -> SingleLevel:
    """GNSD: D^k = W D^{k-1} + d^k - d^{k-1}, s^{k+1} = W s^k - a D^k, with D^0 = d^0 as ``d_psgd``.

    Source: Lu, Zhang, Sun and Hong, 2019, "GNSD: a gradient-tracking based nonconvex stochastic
    algorithm for decentralized optimization", IEEE Data Science Workshop.

    Differences from the source, whose text could not be consulted:
        1. That the tracking is non-ATC is read off a public implementation.
        2. Training and validation samples are merged, as in the SUN-DSBO paper's comparison.
    """
    return _single_level(options, horizon, "non-atc-gt")


def _single_level(options: SingleLevelOptions, horizon: Horizon, name: str) -> SingleLevel:
    step_sizes = steps(options, "x", "y", horizon=horizon)

    def of(trained: tuple[str, ...]) -> Composed:
        return Composed(
            begin=_begin,
            direction=partial(_direction, trained),
            estimator=minibatch({}),
            techniques={v: technique(name) for v in trained},
            step_sizes=step_sizes,
            price=Oracles(f=1, g=1),
        )

    return SingleLevel(of)


def _begin(task: Task) -> Variables:
    x, y = task.start()
    return {"x": x, "y": y}


def _direction(trained: tuple[str, ...], task: Task, w: Variables, xi: Any, _k: int) -> Variables:
    """Return the gradient of the ordinary training loss in the trained variables."""
    at = w | {v: leaf(w[v]) for v in trained}
    value = task.single_level(at["x"], at["y"], xi)  # type: ignore[attr-defined]
    return dict(zip(trained, gradient(value, *(at[v] for v in trained)), strict=True))
