"""The table of methods: each is a direction, an estimator and a technique for every variable.

Three of them, all below in METHODS:

    method             direction   estimator                 technique of x, y, θ
    sun-dsbo-se        sun         minibatch|momentum|storm  se, se, se
    sun-dsbo-gt        sun         minibatch|momentum|storm  gt, gt, gt
    sun-dsbo-ed-gt     sun         minibatch|momentum|storm  ed, gt, gt

A method that does not fit the composition is any object with the members of
``composition.Algorithm``.  Adding a method is one function and its line in METHODS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sundsbo_mpi import directions
from sundsbo_mpi.composition import Algorithm, Composed, Penalty
from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.estimators import ESTIMATORS, Variables
from sundsbo_mpi.schedules import Schedule, Scheduled, as_schedule, power_decay
from sundsbo_mpi.techniques import technique

if TYPE_CHECKING:
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class MethodOptions:
    """What every method offers (``--set algorithm.NAME=VALUE``): to mix with (I + W)/2, not W."""

    lazy: bool = False

    def remarks(self) -> tuple[str, ...]:
        """Say where these options leave the theory of the method."""
        return ()


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
        for name in ("mu0", "p"):
            value = getattr(self, name)
            if not (isinstance(value, float) and 0 <= value < math.inf):
                raise UsageError(f"algorithm.{name} is {value}: expected a number of at least 0.")

    def remarks(self) -> tuple[str, ...]:
        """Say where these options leave the assumptions of the paper's Theorems 1 and 2."""
        outside = []
        if self.step_x != self.step_y:
            outside.append("step_x differs from step_y")
        if not 0 < self.p < 1 / 4:
            outside.append(f"p = {self.p:g} is not between 0 and 1/4")
        return (f"outside the theorems' assumptions: {', '.join(outside)}",) if outside else ()


class Horizon(NamedTuple):
    """n and K, which a schedule may depend on."""

    agents: int
    iterations: int


def _sun_dsbo(options: SunOptions, horizon: Horizon, **own: str) -> Composed:
    """SUN-DSBO with the techniques ``own``, by variable, unless the options name others.

    μ_k = μ_0 (1 + k)^-p; θ^0 = y^0.
    """
    mu = power_decay(options.mu0, options.p)

    def schedules(kind: str, most: float) -> dict[str, Schedule]:
        given = {f"{kind}_{v}": getattr(options, f"{kind}_{v}") for v in own}
        found = {
            name: as_schedule(f"algorithm.{name}", value, **horizon._asdict())
            for name, value in given.items()
        }
        for name, schedule in found.items():
            for k in (0, horizon.iterations - 1):  # schedules are monotone
                value = _value(schedule, k)
                if not (math.isfinite(value) and 0 <= value <= most):
                    raise UsageError(
                        f"algorithm.{name} is {value:g} in iteration {k}: expected a number of at "
                        f"least 0{'' if most == math.inf else f' and at most {most:g}'}."
                    )
        return dict(zip(own, found.values(), strict=True))

    def begin(task: Task) -> Variables:
        x, y = task.start()
        return {"x": x, "y": y, "theta": y}

    return Composed(
        begin=begin,
        direction=lambda task, w, xi, k: directions.sun(task, w, xi, mu=mu(k), gamma=options.gamma),
        estimator=ESTIMATORS[options.estimator](schedules("rho", most=1.0)),
        techniques={v: technique(getattr(options, v) or name) for v, name in own.items()},
        step_sizes=schedules("step", most=math.inf),
        penalty=lambda k: Penalty(mu(k), options.gamma),
    )


def _value(schedule: Schedule, k: int) -> float:
    try:
        return schedule(k)
    except OverflowError:
        return math.inf


def sun_dsbo_se(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-SE, Algorithm 1: ◇^{k+1} = W (◇^k - λ D̂^k)."""
    return _sun_dsbo(options, horizon, x="se", y="se", theta="se")


def sun_dsbo_dgd(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO with non-ATC DGD: ◇^{k+1} = W ◇^k - λ D̂^k."""
    return _sun_dsbo(options, horizon, x="dgd", y="dgd", theta="dgd")


def sun_dsbo_gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-GT, Algorithm 2: D^k = W (D^{k-1} + D̂^k - D̂^{k-1}), ◇^{k+1} = W (◇^k - λ D^k)."""
    return _sun_dsbo(options, horizon, x="gt", y="gt", theta="gt")


def sun_dsbo_semi_gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-Semi-ATC-GT: D^k = W (D^{k-1} + D̂^k - D̂^{k-1}), ◇^{k+1} = W ◇^k - λ D^k."""
    return _sun_dsbo(options, horizon, x="semi-gt", y="semi-gt", theta="semi-gt")


def sun_dsbo_non_atc_gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-Non-ATC-GT: D^k = W D^{k-1} + D̂^k - D̂^{k-1}, ◇^{k+1} = W ◇^k - λ D^k."""
    return _sun_dsbo(options, horizon, x="non-atc-gt", y="non-atc-gt", theta="non-atc-gt")


def sun_dsbo_extra(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-EXTRA: ◇^{k+1} = ◇^k + W ◇^k - (I+W)/2 ◇^{k-1} - (λ D̂^k - λ D̂^{k-1})."""
    return _sun_dsbo(options, horizon, x="extra", y="extra", theta="extra")


def sun_dsbo_ed(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-ED: ◇^{k+1} = W (2 ◇^k - ◇^{k-1} - (λ D̂^k - λ D̂^{k-1}))."""
    return _sun_dsbo(options, horizon, x="ed", y="ed", theta="ed")


def sun_dsbo_ed_gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-ED-GT: the upper-level variable x by ED, y and θ by GT."""
    return _sun_dsbo(options, horizon, x="ed", y="gt", theta="gt")


def sun_dsbo_extra_gt(options: SunOptions, horizon: Horizon) -> Composed:
    """SUN-DSBO-EXTRA-GT: the upper-level variable x by EXTRA, y and θ by GT."""
    return _sun_dsbo(options, horizon, x="extra", y="gt", theta="gt")


class Method(NamedTuple):
    """A method and its row of the paper's comparison table, which has SUN-DSBO-SE and -GT."""

    build: Callable[[Any, Horizon], Algorithm]
    options: type[MethodOptions]
    convexity: str
    """Of the lower level: N.C. nonconvex, - not analysed."""
    heterogeneity: str
    """Assumed of upper/lower gradients: BGD bounded dissimilarity, Free none, - not analysed."""
    oracles: str


METHODS: Mapping[str, Method] = {
    "sun-dsbo-se": Method(sun_dsbo_se, SunOptions, "N.C.", "BGD/BGD", "Grad"),
    "sun-dsbo-dgd": Method(sun_dsbo_dgd, SunOptions, "-", "-", "Grad"),
    "sun-dsbo-gt": Method(sun_dsbo_gt, SunOptions, "N.C.", "Free/Free", "Grad"),
    "sun-dsbo-semi-gt": Method(sun_dsbo_semi_gt, SunOptions, "-", "-", "Grad"),
    "sun-dsbo-non-atc-gt": Method(sun_dsbo_non_atc_gt, SunOptions, "-", "-", "Grad"),
    "sun-dsbo-extra": Method(sun_dsbo_extra, SunOptions, "-", "-", "Grad"),
    "sun-dsbo-ed": Method(sun_dsbo_ed, SunOptions, "-", "-", "Grad"),
    "sun-dsbo-ed-gt": Method(sun_dsbo_ed_gt, SunOptions, "-", "-", "Grad"),
    "sun-dsbo-extra-gt": Method(sun_dsbo_extra_gt, SunOptions, "-", "-", "Grad"),
}


def method(name: str) -> Method:
    """Look a method up by name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in METHODS:
        raise unknown("algorithm", name, METHODS)
    return METHODS[name]


def by_default(entry: Method) -> Algorithm:
    """Build a method with its default options, to read off its price and what it needs."""
    return entry.build(entry.options(), Horizon(agents=1, iterations=1))


MARGIN = 1e-9
"""λ_min(W) must exceed a method's bound by more than this."""


def is_safe(algorithm: Algorithm, lambda_min: float) -> bool:
    """Say whether a method may mix with weights whose smallest eigenvalue is ``lambda_min``."""
    return lambda_min > algorithm.lambda_min + MARGIN


def safe_for(lambda_min: float) -> dict[str, bool]:
    """Say of each method whether it is safe for weights with this smallest eigenvalue."""
    return {name: is_safe(by_default(entry), lambda_min) for name, entry in METHODS.items()}


def gamma_remark(penalty: Penalty | None, lipschitz: float) -> tuple[str, ...]:
    """Say so if γ is not below 1/(2 L2), as the paper's theorems assume; L2 may be NaN."""
    if penalty is None or not 2 * lipschitz * penalty.gamma >= 1:
        return ()
    return (
        f"outside the theorems' assumptions: gamma = {penalty.gamma:g} is not below 1/(2 L2) = "
        f"{1 / (2 * lipschitz):.3g}",
    )
