"""Step I, the directions: what one agent would descend along, from one batch of its own data.

A direction is the gradient of a scalar, so the author of a task writes losses and no derivatives.
All variables are flat tensors of the run's dtype: x of shape (d_x,), y and theta of shape (d_y,).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sundsbo_mpi.estimators import Variables
    from sundsbo_mpi.tasks.base import Task


def sun(task: Task, w: Variables, xi: Any, *, mu: float, gamma: float) -> Variables:
    """Return D_x, D_y and D_theta of SUN-DSBO (SUN-DSBO paper, eqs. 6a-6c) on the batch ``xi``.

    With the saddle function of eq. 5,
        Φ(x, y, θ) = μ f(x, y; ξ) + g(x, y; ξ) - g(x, θ; ξ) - ‖θ - y‖² / (2γ),
    they are D_x = ∂_x Φ, D_y = ∂_y Φ and D_θ = -∂_θ Φ: descent in x and y, ascent in θ.
    """
    import torch

    x, y, theta = (w[name].detach().requires_grad_() for name in ("x", "y", "theta"))
    phi = (
        mu * task.upper(x, y, xi)
        + task.lower(x, y, xi)
        - task.lower(x, theta, xi)
        - (theta - y).square().sum() / (2 * gamma)
    )
    D_x, D_y, up_theta = torch.autograd.grad(
        phi, (x, y, theta), allow_unused=True, materialize_grads=True
    )
    return {"x": D_x, "y": D_y, "theta": -up_theta}
