"""SUN-DSBO (arXiv 2601.22682): ``sun`` directions, an estimator, and a technique per variable.

A mixed strategy ``sun-dsbo-U-L`` uses U on the upper level, x, and L on y and θ.  SPARKLE is named
the other way round: its ED-GT has ED on the lower level.
"""

from __future__ import annotations

from dataclasses import dataclass

from sundsbo_mpi.algorithms.base import Horizon, schedules, steps
from sundsbo_mpi.algorithms.moreau import MoreauOptions, begin
from sundsbo_mpi.composition import Composed, Oracles, directions
from sundsbo_mpi.composition.estimators import ESTIMATORS
from sundsbo_mpi.composition.schedules import Scheduled
from sundsbo_mpi.composition.techniques import technique
from sundsbo_mpi.errors import unknown


@dataclass(frozen=True)
class SunOptions(MoreauOptions):
    """The options of every SUN-DSBO method.

    Args:
        estimator: Name of an estimator, which makes directions of the gradients on batches.
        rho_x: Weight of the new gradient in x, for an estimator that remembers older ones.
        rho_y: The same in y.
        rho_theta: The same in θ.
        x: Name of the technique of x; if not set, the method's own.
        y: The same of y.
        theta: The same of θ.
    """

    estimator: str = "minibatch"
    rho_x: Scheduled = 0.5
    rho_y: Scheduled = 0.5
    rho_theta: Scheduled = 0.5
    x: str | None = None
    y: str | None = None
    theta: str | None = None

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        super().__post_init__()
        if self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)

    def remarks(self) -> tuple[str, ...]:
        """Say where these options leave the assumptions of the paper's Theorems 1 and 2."""
        outside = []
        if self.step_x != self.step_y:
            outside.append("step_x differs from step_y")
        if any(isinstance(s, dict) and "power" in s for s in (self.step_x, self.step_y)):
            outside.append("a step varies with k")
        if not 0 < self.p < 1 / 4:
            outside.append(f"p = {self.p:g}, not 0 < p < 1/4")
        if self.mu0 == 0:
            outside.append("mu0 = 0")
        if self.estimator != "minibatch":
            outside.append(f"directions by {self.estimator}")
        if self.wire or self.compressor:
            outside.append("messages that are rounded or compressed")
        if mixed := [v for v in ("x", "y", "theta") if getattr(self, v)]:
            outside.append(f"another technique for {', '.join(mixed)}")
        return (f"outside the theorems' assumptions: {', '.join(outside)}",) if outside else ()


def _sun_dsbo(options: SunOptions, horizon: Horizon, **own: str) -> Composed:
    """SUN-DSBO with the techniques ``own``, by variable, unless the options name others."""
    rho = schedules(options, {v: f"rho_{v}" for v in own}, horizon, most=1.0)

    return Composed(
        begin=begin,
        direction=lambda task, w, xi, k: directions.sun(
            task, w, xi, **options.penalty(k)._asdict()
        ),
        estimator=ESTIMATORS[options.estimator](rho),
        techniques={v: technique(getattr(options, v) or name) for v, name in own.items()},
        step_sizes=steps(options, *own, horizon=horizon),
        price=Oracles(f=1, g=2),
        penalty=options.penalty,
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
