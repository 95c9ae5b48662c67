"""SUN-DSBO (arXiv 2601.22682): ``sun`` directions, an estimator, and a technique per variable.

A mixed strategy ``sun-dsbo-U-L`` uses U on the upper level, x, and L on y and θ.  SPARKLE is named
the other way round: its ED-GT has ED on the lower level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sundsbo_mpi import directions
from sundsbo_mpi.algorithms.base import (
    Horizon,
    MethodOptions,
    require_at_least,
    schedules,
    steps,
)
from sundsbo_mpi.composition import Composed, Oracles, Penalty
from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.estimators import ESTIMATORS, Variables
from sundsbo_mpi.schedules import Scheduled, power_decay
from sundsbo_mpi.techniques import technique

if TYPE_CHECKING:
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class SunOptions(MethodOptions):
    """The options of every SUN-DSBO method.

    Steps and rho are numbers or schedules; ``x``, ``y`` and ``theta`` name a technique in place of
    the method's own; ``gamma`` is γ itself, not 1/γ.
    """

    step_x: Scheduled = 0.01
    step_y: Scheduled = 0.01
    step_theta: Scheduled = 0.01
    mu0: float = 1.0
    p: float = 0.0
    gamma: float = 1.0
    estimator: str = "minibatch"
    rho_x: Scheduled = 0.5
    rho_y: Scheduled = 0.5
    rho_theta: Scheduled = 0.5
    x: str | None = None
    y: str | None = None
    theta: str | None = None

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        if self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)
        if not (isinstance(self.gamma, float) and 0 < self.gamma < math.inf):
            raise UsageError(f"algorithm.gamma is {self.gamma}: expected a number above 0.")
        require_at_least(self, 0, "mu0", "p")

    def remarks(self) -> tuple[str, ...]:
        """Say where these options leave the assumptions of the paper's Theorems 1 and 2."""
        outside = []
        if self.step_x != self.step_y:
            outside.append("step_x differs from step_y")
        if not 0 < self.p < 1 / 4:
            outside.append(f"p = {self.p:g} is not between 0 and 1/4")
        return (f"outside the theorems' assumptions: {', '.join(outside)}",) if outside else ()


def _sun_dsbo(options: SunOptions, horizon: Horizon, **own: str) -> Composed:
    """SUN-DSBO with the techniques ``own``, by variable, unless the options name others.

    μ_k = μ_0 (1 + k)^-p; θ^0 = y^0.
    """
    mu = power_decay(options.mu0, options.p)
    rho = schedules(options, {v: f"rho_{v}" for v in own}, horizon, most=1.0)

    def begin(task: Task) -> Variables:
        x, y = task.start()
        return {"x": x, "y": y, "theta": y}

    return Composed(
        begin=begin,
        direction=lambda task, w, xi, k: directions.sun(task, w, xi, mu=mu(k), gamma=options.gamma),
        estimator=ESTIMATORS[options.estimator](rho),
        techniques={v: technique(getattr(options, v) or name) for v, name in own.items()},
        step_sizes=steps(options, *own, horizon=horizon),
        price=Oracles(f=1, g=2),
        penalty=lambda k: Penalty(mu(k), options.gamma),
    )


def se(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-SE, Algorithm 1: ◇^{k+1} = W (◇^k - λ D̂^k)."""
    return _sun_dsbo(options, horizon, x="se", y="se", theta="se")


def dgd(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO with non-ATC DGD: ◇^{k+1} = W ◇^k - λ D̂^k."""
    return _sun_dsbo(options, horizon, x="dgd", y="dgd", theta="dgd")


def gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-GT, Algorithm 2: D^k = W (D^{k-1} + D̂^k - D̂^{k-1}), ◇^{k+1} = W (◇^k - λ D^k)."""
    return _sun_dsbo(options, horizon, x="gt", y="gt", theta="gt")


def semi_gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-Semi-ATC-GT: D^k = W (D^{k-1} + D̂^k - D̂^{k-1}), ◇^{k+1} = W ◇^k - λ D^k."""
    return _sun_dsbo(options, horizon, x="semi-gt", y="semi-gt", theta="semi-gt")


def non_atc_gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-Non-ATC-GT: D^k = W D^{k-1} + D̂^k - D̂^{k-1}, ◇^{k+1} = W ◇^k - λ D^k."""
    return _sun_dsbo(options, horizon, x="non-atc-gt", y="non-atc-gt", theta="non-atc-gt")


def extra(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-EXTRA: ◇^{k+1} = ◇^k + W ◇^k - (I+W)/2 ◇^{k-1} - (λ D̂^k - λ D̂^{k-1})."""
    return _sun_dsbo(options, horizon, x="extra", y="extra", theta="extra")


def ed(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-ED: ◇^{k+1} = W (2 ◇^k - ◇^{k-1} - (λ D̂^k - λ D̂^{k-1}))."""
    return _sun_dsbo(options, horizon, x="ed", y="ed", theta="ed")


def ed_gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-ED-GT: the upper-level variable x by ED, y and θ by GT."""
    return _sun_dsbo(options, horizon, x="ed", y="gt", theta="gt")


def extra_gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-EXTRA-GT: the upper-level variable x by EXTRA, y and θ by GT."""
    return _sun_dsbo(options, horizon, x="extra", y="gt", theta="gt")
