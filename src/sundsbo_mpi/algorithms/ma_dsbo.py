"""MA-DSBO: an inner loop for the lower level, another for the linear system, and an average.

In iteration k, every one of the T + N inner steps and the step on x with a batch of its own:

    T times   y <- W y - β g_y(x, y)
    N times   d <- W d + s - s_before,  z <- W z - η d,  where s = g_yy(x, y) z - f_y(x, y)
    once      r <- (1 - θ) r + θ (f_x(x, y) - g_xy(x, y) z),  x <- W x - α r

with r^0 = 0 and z^0 = 0.  The tracker d (``techniques.non_atc_gt_step``) starts in every
iteration as the agent's own s; y and z go on from where the last iteration left them.

Source: Chen, Huang, Ma and Balasubramanian, 2023, arXiv 2210.12839.

Differences from the source, of which the algorithm box could not be consulted:
    1. All equations are our reading.
    2. z goes on from the last iteration, so that few inner steps suffice; starting it from zero
       in every iteration is the other reading.
    3. x moves along the average that holds the newest hypergradient, not along the one before.
    4. y moves without tracking.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sundsbo_mpi.algorithms.aid import AveragedOptions, averaged, begin, unpenalised
from sundsbo_mpi.algorithms.base import Horizon, steps
from sundsbo_mpi.composition import Composed, Oracles, directions
from sundsbo_mpi.composition.estimators import minibatch
from sundsbo_mpi.composition.loops import Loop
from sundsbo_mpi.composition.staged import Staged
from sundsbo_mpi.composition.techniques import technique
from sundsbo_mpi.options import require_integer


@dataclass(frozen=True)
class MaDsboOptions(AveragedOptions):
    """The options of MA-DSBO.

    Args:
        inner_y: Number T of steps on y in an iteration.
        inner_z: Number N of steps on z in an iteration.
    """

    inner_y: int = 5
    inner_z: int = 5

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        super().__post_init__()
        require_integer("algorithm.inner_y", self.inner_y, 1)
        require_integer("algorithm.inner_z", self.inner_z, 1)


def ma_dsbo(options: MaDsboOptions, horizon: Horizon) -> Staged:
    """MA-DSBO: y by T steps, z by N steps of the HIGP oracle, x along a moving average."""
    composed = partial(
        Composed, begin=begin, step_sizes=steps(options, "x", "y", "z", horizon=horizon)
    )
    y = composed(
        direction=unpenalised(directions.lower_gradient),
        estimator=minibatch({}),
        techniques={"y": technique("dgd")},
        price=Oracles(g=1),
    )
    z = composed(
        direction=unpenalised(directions.linear_residual),
        estimator=minibatch({}),
        techniques={"z": technique("non-atc-gt")},
        price=Oracles(f=1, g=1, hvp=1),
    )
    x = composed(
        direction=unpenalised(directions.hypergradient),
        estimator=averaged(options, horizon),
        techniques={"x": technique("dgd")},
        price=Oracles(f=1, g=1, jvp=1),
    )
    inner_y = Loop(y, options.inner_y)
    inner_z = Loop(z, options.inner_z, first_draw=1 + options.inner_y, afresh=True)
    return Staged((inner_y, inner_z, x))
