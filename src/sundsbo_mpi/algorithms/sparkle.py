"""SPARKLE (Zhu, Kong, Lu, Huang and Yuan, 2024, arXiv 2411.14166): a technique per level.

With u, v and p of ``directions`` on one batch of iteration k, and T_◇ the technique of ◇,

    y^{k+1} = T_y(y^k, v),    v at (x^k, y^k)
    z^{k+1} = T_z(z^k, p),    p at (x^k, y^{k+1}, z^k)
    r^{k+1} = (1 - θ) r^k + θ u,    u at (x^k, y^{k+1}, z^{k+1}),    r^0 = 0
    x^{k+1} = T_x(x^k, r^{k+1})

or, with ``order = "one-pass"``, v, p and u all at (x^k, y^k, z^k); then one double backward gives
all products and the three variables travel in one message.

A mixed strategy ``sparkle-L-U`` uses L on the lower level, y and z, and U on the upper level, x.
SUN-DSBO is named the other way round: its ED-GT has ED on x.

Differences from the source, of which its algorithm boxes could not be consulted:
    1. The order of updates is our reading; ``one-pass`` is the other one.
    2. As far as we know the source writes every technique with matrices A, B, C and a dual
       variable.  Here each is its usual recursion, with the same iterates where all agents start
       at one point: GT is ATC-GT, EXTRA is the form with W twice, ED mixes with W.
    3. v, p and u of an iteration are taken on the same batch, which is fresh in every iteration.
    4. Steps may vary; then scaled directions are differenced (``techniques.extra_step``).
    5. That θ weighs the new u, and that L comes before U in a name, is our reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sundsbo_mpi.algorithms.aid import ALL_AT_ONCE, AveragedOptions, averaged, begin, unpenalised
from sundsbo_mpi.algorithms.base import Horizon, steps
from sundsbo_mpi.composition import Composed, Oracles, directions
from sundsbo_mpi.composition.estimators import minibatch
from sundsbo_mpi.composition.staged import Staged
from sundsbo_mpi.composition.techniques import technique
from sundsbo_mpi.errors import unknown

ORDERS = ("gauss-seidel", "one-pass")


@dataclass(frozen=True)
class SparkleOptions(AveragedOptions):
    """The options of SPARKLE.

    Args:
        order: "gauss-seidel", in which y, z and x move one after the other, or "one-pass", all at
            once.
    """

    order: str = "gauss-seidel"

    def __post_init__(self) -> None:
        """Refuse an unknown order."""
        super().__post_init__()
        if self.order not in ORDERS:
            raise unknown("order", self.order, ORDERS)


def _sparkle(
    options: SparkleOptions, horizon: Horizon, *, lower: str, upper: str
) -> Composed | Staged:
    """SPARKLE with the technique ``lower`` on y and z and ``upper`` on x."""
    composed = partial(
        Composed, begin=begin, step_sizes=steps(options, "x", "y", "z", horizon=horizon)
    )
    on = {"y": technique(lower), "z": technique(lower), "x": technique(upper)}
    average = averaged(options, horizon)
    if options.order == "one-pass":
        return composed(
            direction=unpenalised(directions.soba),
            estimator=average,
            techniques=on,
            price=ALL_AT_ONCE,
        )
    one_by_one = {
        "y": (directions.lower_gradient, minibatch({}), Oracles(g=1)),
        "z": (directions.linear_residual, minibatch({}), Oracles(f=1, g=1, hvp=1)),
        "x": (directions.hypergradient, average, Oracles(f=1, g=1, jvp=1)),
    }
    return Staged(
        tuple(
            composed(
                direction=unpenalised(pieces),
                estimator=estimator,
                techniques={v: on[v]},
                price=price,
            )
            for v, (pieces, estimator, price) in one_by_one.items()
        )
    )


def gt(options: SparkleOptions, horizon: Horizon) -> Composed | Staged:
    """SPARKLE-GT: D^k = W (D^{k-1} + d^k - d^{k-1}), ◇^{k+1} = W (◇^k - λ D^k)."""
    return _sparkle(options, horizon, lower="gt", upper="gt")


def extra(options: SparkleOptions, horizon: Horizon) -> Composed | Staged:
    """SPARKLE-EXTRA: ◇^{k+1} = W (2 ◇^k - ◇^{k-1}) - (λ d^k - λ d^{k-1})."""
    return _sparkle(options, horizon, lower="suda-extra", upper="suda-extra")


def ed(options: SparkleOptions, horizon: Horizon) -> Composed | Staged:
    """SPARKLE-ED: ◇^{k+1} = W (2 ◇^k - ◇^{k-1} - (λ d^k - λ d^{k-1}))."""
    return _sparkle(options, horizon, lower="ed", upper="ed")


def gt_ed(options: SparkleOptions, horizon: Horizon) -> Composed | Staged:
    """SPARKLE-GT-ED: GT on y and z, ED on x."""
    return _sparkle(options, horizon, lower="gt", upper="ed")


def gt_extra(options: SparkleOptions, horizon: Horizon) -> Composed | Staged:
    """SPARKLE-GT-EXTRA: GT on y and z, EXTRA on x."""
    return _sparkle(options, horizon, lower="gt", upper="suda-extra")


def ed_gt(options: SparkleOptions, horizon: Horizon) -> Composed | Staged:
    """SPARKLE-ED-GT: ED on y and z, GT on x."""
    return _sparkle(options, horizon, lower="ed", upper="gt")


def ed_extra(options: SparkleOptions, horizon: Horizon) -> Composed | Staged:
    """SPARKLE-ED-EXTRA: ED on y and z, EXTRA on x."""
    return _sparkle(options, horizon, lower="ed", upper="suda-extra")


def extra_gt(options: SparkleOptions, horizon: Horizon) -> Composed | Staged:
    """SPARKLE-EXTRA-GT: EXTRA on y and z, GT on x."""
    return _sparkle(options, horizon, lower="suda-extra", upper="gt")


def extra_ed(options: SparkleOptions, horizon: Horizon) -> Composed | Staged:
    """SPARKLE-EXTRA-ED: EXTRA on y and z, ED on x."""
    return _sparkle(options, horizon, lower="suda-extra", upper="ed")
