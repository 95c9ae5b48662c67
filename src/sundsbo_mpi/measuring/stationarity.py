"""The stationarity measure ‖∇Ψ_μ(x, y)‖² of the penalised problem, over all agents' full data.

    Ψ_μ(x, y) = μ F(x, y) + G(x, y) - V_γ(x, y),
    V_γ(x, y) = min_θ G(x, θ) + ‖θ - y‖² / (2γ)             (SUN-DSBO paper, Section 2)

With θ* the minimiser, ∇_x Ψ = μ F_x + G_x(x, y) - G_x(x, θ*) and ∇_y Ψ = μ F_y + G_y - (y - θ*)/γ,
which is the direction of SUN-DSBO at θ*.  Rank 0 drives the solution for θ* and asks the others for
gradients by an integer, so that no agent leaves the loop alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from sundsbo_mpi.composition.directions import gradient, leaf, product, sun

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.tasks.base import Penalty, Task

MAX_ITERATIONS = 500
TOLERANCE = 1e-9
"""Of the largest entry of the gradient in θ."""
POWER_ITERATIONS = 30


class Stationarity(NamedTuple):
    """The measure, how well θ* was found, and the smoothness of the lower level."""

    measure: float
    """‖∇Ψ_μ(x, y)‖²."""
    residual: float
    """‖∇_θ (G(x, θ) + ‖θ - y‖²/(2γ))‖ at the θ* used."""
    lipschitz: float
    """Estimate of L2: the largest |eigenvalue| of the Hessian of G(x, .) at y."""


UNKNOWN = Stationarity(math.nan, math.nan, math.nan)


def stationarity(tally: Tally, task: Task, w_bar: Variables, penalty: Penalty) -> Stationarity:
    """Measure the averaged iterate; collective, the result is the same on all agents.

    Args:
        tally: All agents.
        task: The agent's problem, with ``everything()``.
        w_bar: The averaged iterate, the same on all agents.
        penalty: μ and γ.
    """
    batch = task.everything()  # type: ignore[attr-defined]
    x, y = w_bar["x"], w_bar["y"]

    def lower(v: Tensor) -> Tensor:
        return task.lower(x, v, batch)

    def envelope(theta: Tensor) -> Tensor:
        return lower(theta) + (theta - y).square().sum() / (2 * penalty.gamma)

    theta = _minimise(tally, envelope, y)
    own = sun(task, {"x": x, "y": y, "theta": theta}, batch, mu=penalty.mu, gamma=penalty.gamma)
    D_x, D_y, D_theta = (tally.mean(_array(own[v])) for v in ("x", "y", "theta"))
    return Stationarity(
        measure=float(D_x @ D_x + D_y @ D_y),
        residual=float(np.linalg.norm(D_theta)),
        lipschitz=_largest_eigenvalue(tally, lower, y),
    )


def _minimise(tally: Tally, own: Callable[[Tensor], Tensor], y: Tensor) -> Tensor:
    """Minimise the agents' mean of ``own`` from y by L-BFGS on rank 0; the same θ on all agents."""
    point = np.empty(y.numel())

    def evaluate() -> tuple[float, NDArray[np.float64]]:
        tally.spread(point)
        theta = leaf(torch.from_numpy(point).to(y))
        value = own(theta)
        (slope,) = gradient(value, theta)
        mean = tally.mean(np.append(_array(slope), _array(value)))
        return float(mean[-1]), mean[:-1]

    def asked(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        tally.tell(1)
        point[:] = theta
        return evaluate()

    if tally.is_root:
        from scipy.optimize import minimize

        found = minimize(
            asked,
            _array(y),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MAX_ITERATIONS, "gtol": TOLERANCE, "ftol": 0.0, "maxcor": 20},
        )
        tally.tell(0)
        point[:] = found.x
    else:
        while tally.tell(None):
            evaluate()
    tally.spread(point)
    return torch.from_numpy(point).to(y)


def _largest_eigenvalue(tally: Tally, own: Callable[[Tensor], Tensor], y: Tensor) -> float:
    """Estimate by power iteration the largest |eigenvalue| of the mean Hessian of ``own`` at y."""
    at = leaf(y)
    (slope,) = gradient(own(at), at, keep_graph=True)

    def times(v: NDArray[np.float64]) -> NDArray[np.float64]:
        return tally.mean(_array(product(slope, at, torch.from_numpy(v).to(y))))

    v = np.random.default_rng(0).standard_normal(y.numel())
    for _ in range(POWER_ITERATIONS):
        v = times(v / max(np.linalg.norm(v), np.finfo(float).tiny))
    return float(np.linalg.norm(v))


def _array(v: Tensor) -> NDArray[np.float64]:
    return v.double().numpy(force=True)
