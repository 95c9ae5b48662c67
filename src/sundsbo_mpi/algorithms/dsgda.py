"""DSGDA-GT: the value function as a penalty, by gradient descent-ascent with tracking.

On the batch of iteration k, with z^0 = y^0,

    D_x = ν f_x(x, y) + g_x(x, y) - g_x(x, z)
    D_y = ν f_y(x, y) + g_y(x, y)
    D_z = g_y(x, z)

and ATC gradient tracking on all three (``techniques.gt_step``).  With ``inner_y`` = T > 1 there
are T such steps on y and z, each on a fresh batch, and then one on x at the new y and z.
It is SUN-DSBO-GT with γ = infinity and μ_k = ν.

Source: Wang, Chen, Ma and Zhang, 2024, arXiv 2410.19319.

Differences from the source, whose abstract alone could be read:
    1. All equations are our reading of "decentralised gradient descent-ascent with gradient
       tracking" on the value-function penalty.
    2. As far as we know the penalty is f + (g(x, y) - g(x, z))/ν there; it is multiplied by ν
       here, which leaves the solution as it is and makes the steps those of g.  The reading without
       it has steps 1/ν times as long, and f + ν (g(x, y) - g(x, z)) has another solution, far from
       the bilevel one where ν is small.
    3. The tracking is adapt-then-combine.
    4. The inner loop, and its order, are ours; without it all variables move at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.algorithms.base import (
    Horizon,
    MethodOptions,
    steps,
)
from sundsbo_mpi.composition import Composed, Oracles, directions
from sundsbo_mpi.composition.estimators import Variables, minibatch
from sundsbo_mpi.composition.loops import Loop
from sundsbo_mpi.composition.schedules import Scheduled
from sundsbo_mpi.composition.staged import Staged
from sundsbo_mpi.composition.techniques import technique
from sundsbo_mpi.options import require_integer, require_positive
from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class DsgdaOptions(MethodOptions):
    """The options of DSGDA-GT.

    Args:
        step_x: Step of x.
        step_y: Step of y.
        step_z: Step of z.
        nu: The penalty's ν in ν f(x, y) + g(x, y) - g(x, z).
        inner_y: Steps on y and z for each step on x.
    """

    step_x: Scheduled = 0.01
    step_y: Scheduled = 0.01
    step_z: Scheduled = 0.01
    nu: float = 0.1
    inner_y: int = 1

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        super().__post_init__()
        require_positive("algorithm.nu", self.nu)
        require_integer("algorithm.inner_y", self.inner_y, 1)


def dsgda_gt(options: DsgdaOptions, horizon: Horizon) -> Composed | Staged:
    """DSGDA-GT: min over x and y, max over z of ν f(x, y) + g(x, y) - g(x, z)."""
    nu = options.nu
    step_sizes = steps(options, "x", "y", "z", horizon=horizon)

    def begin(task: Task) -> Variables:
        x, y = task.start()
        return {"x": x, "y": y, "z": y}

    def direction(
        variables: tuple[str, ...], task: Task, w: Variables, xi: Any, _k: int
    ) -> Variables:
        point = {"x": w["x"], "y": w["y"], "theta": w["z"]}
        D = directions.sun(task, point, xi, mu=nu, gamma=math.inf)
        return {v: D["theta" if v == "z" else v] for v in variables}

    def tracked(*variables: str) -> Composed:
        return Composed(
            begin=begin,
            direction=partial(direction, variables),
            estimator=minibatch({}),
            techniques={v: technique("gt") for v in variables},
            step_sizes=step_sizes,
            price=Oracles(f=1, g=2),
            penalty=lambda _k: Penalty(nu, math.inf),
        )

    if options.inner_y == 1:
        return tracked("x", "y", "z")
    return Staged((Loop(tracked("y", "z"), options.inner_y), tracked("x")))
