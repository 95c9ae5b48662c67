"""Gossip-DSBO: every derivative is averaged over time and over the neighbours, as a matrix.

All at (x^k, y^k), the Hessians on b further batches, everything in one message:

    e^{k+1} = (1 - β) W e^k + β ê      for e = f_x, f_y, g_xy and V_1, ..., V_b, ê its sample
    x^{k+1} = W x^k - α (f_x - g_xy q)      with the averages of iteration k
    y^{k+1} = W y^k - γ ĝ_y

where q = t_b / L, t_0 = f_y and t_j = f_y + (I - V_j / L) t_{j-1}, a Neumann series of b + 1
terms for the inverse Hessian.  The averages start at zero.  The variables ``g_xy`` and ``g_yy``
are matrices row by row, of d_x d_y and b d_y^2 numbers; a whole Hessian counts as one
Hessian-vector product, but costs d_y of them, and g_xy d_x Jacobian-vector products.

Source: Yang, Zhang and Wang, 2022, arXiv 2206.10870.

Differences from the source, of which the algorithm box could not be consulted:
    1. All equations are our reading, the start of the averages above all.
    2. x uses the averages from before the exchange, so that one round is enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.algorithms.base import (
    Horizon,
    MethodOptions,
    schedules,
    steps,
)
from sundsbo_mpi.composition import Composed, Oracles
from sundsbo_mpi.composition.directions import gradient, leaf
from sundsbo_mpi.composition.estimators import Variables, minibatch
from sundsbo_mpi.composition.matrix_directions import lower_cross, lower_hessian, require_small
from sundsbo_mpi.composition.schedules import Scheduled
from sundsbo_mpi.composition.techniques import Rounds, technique
from sundsbo_mpi.options import require_integer, require_positive

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.techniques import Gradient
    from sundsbo_mpi.tasks.base import Task

AVERAGES = ("f_x", "f_y", "g_xy", "g_yy")


@dataclass(frozen=True)
class GossipDsboOptions(MethodOptions):
    """The options of Gossip-DSBO.

    Args:
        step_x: Step of x.
        step_y: Step of y.
        moving_average: Weight β of a new sample.
        terms: Number b of Hessians.
        lipschitz: The number L, at least the largest eigenvalue of g_yy.
    """

    step_x: Scheduled = 0.01
    step_y: Scheduled = 0.01
    moving_average: Scheduled = 0.2
    terms: int = 5
    lipschitz: float = 10.0

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        super().__post_init__()
        require_integer("algorithm.terms", self.terms, 1)
        require_positive("algorithm.lipschitz", self.lipschitz)


def gossip_dsbo(options: GossipDsboOptions, horizon: Horizon) -> Composed:
    """Gossip-DSBO: x and y beside gossiped averages of f_x, f_y, g_xy and b Hessians g_yy.

    Raises:
        UsageError: when started on a task that is too large for it.
    """
    blended = technique("dgd")._replace(step=_blend, defect=_blend_defect)
    techniques = {v: technique("dgd") for v in ("x", "y")} | dict.fromkeys(AVERAGES, blended)
    return Composed(
        begin=lambda task: _begin(task, options.terms),
        direction=lambda task, w, xi, k: _direction(task, w, xi, k, options),
        estimator=minibatch({}),
        techniques=techniques,
        step_sizes=steps(options, "x", "y", horizon=horizon)
        | schedules(options, dict.fromkeys(AVERAGES, "moving_average"), horizon, most=1.0),
        price=Oracles(f=1, g=1 + options.terms, hvp=options.terms, jvp=1),
        matrices=True,
    )


def _begin(task: Task, terms: int) -> Variables:
    x, y = task.start()
    shapes = (len(x), len(y)), (terms, len(y), len(y))
    require_small("gossip-dsbo", x, *shapes)
    averages = (x.shape, y.shape, *shapes)
    zeros = {v: x.new_zeros(math.prod(s)) for v, s in zip(AVERAGES, averages, strict=True)}
    return {"x": x, "y": y, **zeros}


def _direction(task: Task, w: Variables, xi: Any, k: int, options: GossipDsboOptions) -> Variables:
    """Return what x and y descend along, and a sample of every average."""
    import torch

    x, y = leaf(w["x"]), leaf(w["y"])
    f_x, f_y = gradient(task.upper(x, y, xi), x, y)
    g_y, g_xy = lower_cross(task, w, xi)
    batches = (task.sample(k, draw) for draw in range(1, options.terms + 1))
    hessians = [lower_hessian(task, w, batch).flatten() for batch in batches]
    hypergradient = w["f_x"] - w["g_xy"].reshape(g_xy.shape) @ _solve(w, options)
    averaged = f_x, f_y, g_xy.flatten(), torch.cat(hessians)
    return {"x": hypergradient, "y": g_y, **dict(zip(AVERAGES, averaged, strict=True))}


def _solve(w: Variables, options: GossipDsboOptions) -> Tensor:
    """Return q, about the inverse Hessian times f_y."""
    d_y = len(w["f_y"])
    t = w["f_y"]
    for V in w["g_yy"].reshape(options.terms, d_y, d_y):
        t = w["f_y"] + t - V @ t / options.lipschitz
    return t / options.lipschitz


def _blend(e: Tensor, sample: Gradient, beta: float, m: Any) -> Rounds[tuple[Tensor, Any]]:
    """Average over the neighbours and over time: e^{k+1} = (1 - β) W e^k + β ê."""
    e_bar = yield e
    return (1 - beta) * e_bar + beta * sample(), m


def _blend_defect(
    e_next: Tensor, e: Tensor, beta: float, sample: Tensor, _m: Any
) -> tuple[Tensor, Tensor]:
    """The average over agents of e^{k+1} - (1 - β) e^k - β ê vanishes; its scale is e^{k+1}."""
    return e_next - (1 - beta) * e - beta * sample, e_next
