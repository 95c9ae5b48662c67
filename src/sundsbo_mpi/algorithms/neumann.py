"""MDBO and VRDBO: local Neumann series, momentum or variance reduction, and gradient tracking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.algorithms.base import (
    Horizon,
    MethodOptions,
    schedules,
    steps,
)
from sundsbo_mpi.composition import Composed, Oracles
from sundsbo_mpi.composition.directions import gradient, leaf, product
from sundsbo_mpi.composition.estimators import Estimator, Variables, momentum, storm
from sundsbo_mpi.composition.schedules import Schedule, Scheduled
from sundsbo_mpi.composition.techniques import Rounds, Technique, Tracking, technique
from sundsbo_mpi.options import require_integer, require_positive

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.techniques import Gradient
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class NeumannOptions(MethodOptions):
    """The options of MDBO and VRDBO.

    Args:
        step_x: Step of x.
        step_y: Step of y.
        moving_average: Weight of the new directions.
        eta: Share η of a step that an iteration goes.
        terms: Length J of the series.
        lipschitz: The number L in the series, at least the largest eigenvalue of g_yy on any agent.
    """

    step_x: Scheduled = 0.01
    step_y: Scheduled = 0.01
    moving_average: Scheduled = 0.2
    eta: float = 0.9
    terms: int = 10
    lipschitz: float = 10.0

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        super().__post_init__()
        require_integer("algorithm.terms", self.terms, 1)
        require_positive("algorithm.eta", self.eta, 1)
        require_positive("algorithm.lipschitz", self.lipschitz)


def mdbo(options: NeumannOptions, horizon: Horizon) -> Composed:
    """MDBO: momentum, gradient tracking, and a step of which the part η is made.

    On the batch of iteration k, at (x^k, y^k), with the agent's own derivatives,

        v = g_y,    u = f_x - g_xy (1/L) sum_{j < J} (I - g_yy/L)^j f_y
        d^k = (1 - ρ) d^{k-1} + ρ (u or v),    d^0 = u or v
        D^k = W D^{k-1} + d^k - d^{k-1},    D^0 = d^0
        ◇^{k+1} = ◇^k + η (W ◇^k - λ D^k - ◇^k)      for x with u and for y with v

    The series inverts the agent's own Hessian, not the average of all, so the limit is not the
    bilevel solution where the agents' lower levels differ.

    Source: Gao, Gu and Thai, 2023, arXiv 2206.15025.

    Differences from the source, of which the algorithm box could not be consulted:
        1. All equations are our reading; that the tracker is non-ATC is part of it.
        2. All terms of the series are summed, on one batch; as far as we know the source takes a
           random part of the series with a batch for every factor.
        3. ``moving_average`` is the weight ρ itself, where as far as we know the
           source has products with η.
    """
    return _neumann(options, horizon, momentum)


def vrdbo(options: NeumannOptions, horizon: Horizon) -> Composed:
    """VRDBO: MDBO with STORM (``estimators.storm``) in place of momentum.

    d^k = (u or v)^k + (1 - ρ) (d^{k-1} - (u or v)^{k-1}), both on the batch of iteration k.

    Source and differences: as for ``mdbo``.
    """
    return _neumann(options, horizon, storm)


def _neumann(
    options: NeumannOptions,
    horizon: Horizon,
    estimator: Callable[[Mapping[str, Schedule]], Estimator],
) -> Composed:
    J, L = options.terms, options.lipschitz
    weights = dict.fromkeys(("x", "y"), "moving_average")
    return Composed(
        begin=lambda task: dict(zip(("x", "y"), task.start(), strict=True)),
        direction=lambda task, w, xi, _k: series(task, w, xi, terms=J, lipschitz=L),
        estimator=estimator(schedules(options, weights, horizon, most=1.0)),
        techniques={v: relaxed(technique("non-atc-gt"), options.eta) for v in ("x", "y")},
        step_sizes=steps(options, "x", "y", horizon=horizon),
        price=Oracles(f=1, g=1, hvp=J - 1, jvp=1),
    )


def series(task: Task, w: Variables, xi: Any, *, terms: int, lipschitz: float) -> Variables:
    """Return u and v of ``mdbo`` on the batch ``xi``: J - 1 Hessian-vector products."""
    x, y = leaf(w["x"]), leaf(w["y"])
    f_x, f_y = gradient(task.upper(x, y, xi), x, y)
    (g_y,) = gradient(task.lower(x, y, xi), y, keep_graph=True)
    total = f_y
    for _ in range(terms - 1):
        total = f_y + total - product(g_y, y, total) / lipschitz
    (jvp,) = gradient(g_y @ total, x)
    return {"x": f_x - jvp / lipschitz, "y": g_y.detach()}


def relaxed(tracking: Technique, eta: float) -> Technique:
    """Let a tracking technique make only the part η of its step: ◇ + η (next ◇ - ◇)."""

    def step(s: Tensor, own: Gradient, lam: float, m: Tracking) -> Rounds[tuple[Tensor, Tracking]]:
        s_half, m = yield from tracking.step(s, own, lam, m)
        return s + eta * (s_half - s), m

    return tracking._replace(step=step)
