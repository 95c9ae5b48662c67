"""SLDBO (Dong, Ma, Yang and Yin, 2023, arXiv 2311.08945): gradient tracking and a bounded z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.algorithms.aid import ALL_AT_ONCE, AidOptions, begin, unpenalised
from sundsbo_mpi.algorithms.base import Horizon, steps
from sundsbo_mpi.composition import Composed, directions
from sundsbo_mpi.composition.estimators import minibatch
from sundsbo_mpi.composition.techniques import Rounds, Technique, technique
from sundsbo_mpi.options import require_positive

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.techniques import Gradient


@dataclass(frozen=True)
class SldboOptions(AidOptions):
    """The options of SLDBO.

    In theory the radius is at least a bound of ‖f_y‖ over the strong convexity of g, which a run
    does not know; the default is meant to be out of the way.  With long runs or large steps on a
    singular lower level z may grow beyond it; a larger radius then switches the projection off.

    Args:
        projection_radius: Bound of ‖z‖ on every agent; a very large one switches that off.
    """

    projection_radius: float = 50.0

    def __post_init__(self) -> None:
        """Refuse a radius outside its range."""
        super().__post_init__()
        require_positive("algorithm.projection_radius", self.projection_radius)


def sldbo(options: SldboOptions, horizon: Horizon) -> Composed:
    """SLDBO, with u, v and p of ``directions`` at (x^k, y^k, z^k) on one batch.

    D_◇^k = W D_◇^{k-1} + d_◇^k - d_◇^{k-1} with d_x = u, d_y = v, d_z = p and D_◇^0 = d_◇^0;
    x^{k+1} = W x^k - α D_x^k,  y^{k+1} = W y^k - β D_y^k,
    z^{k+1} = P(W z^k - η D_z^k) with P the projection onto ‖z‖ <= r.

    Differences from the source, of which the algorithm box could not be consulted:
        1. Non-ATC tracking, the simultaneous update and the place of the projection, after the
           step, are our reading.
        2. The source is deterministic; minibatches are used as in the SUN-DSBO paper's comparison.
    """
    tracking = technique("non-atc-gt")
    return Composed(
        begin=begin,
        direction=unpenalised(directions.soba),
        estimator=minibatch({}),
        techniques={
            "x": tracking,
            "y": tracking,
            "z": projected(tracking, options.projection_radius),
        },
        step_sizes=steps(options, "x", "y", "z", horizon=horizon),
        price=ALL_AT_ONCE,
    )


def projected(tracking: Technique, radius: float) -> Technique:
    """Let a tracking technique end its step with the projection of ◇^{k+1} onto ‖◇‖ <= radius.

    What is conserved, the average of D^k - D̂^k, does not involve ◇ and so survives.  A technique
    that remembers ◇ conserves an average that the projection would break, and is not for this.
    """

    def step(s: Tensor, gradient: Gradient, lam: float, m: Any) -> Rounds[tuple[Tensor, Any]]:
        s, m = yield from tracking.step(s, gradient, lam, m)
        return s * (radius / s.norm().clamp(min=radius)), m

    return tracking._replace(step=step)
