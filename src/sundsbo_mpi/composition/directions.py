"""Step I, the directions: what one agent would descend along, from one batch of its own data.

A direction is made of gradients of scalars, so the author of a task writes losses and no
derivatives; only ``sun`` asks a task that offers its directions for them, which may be faster.  All
variables are flat tensors of the run's dtype: x of shape (d_x,), y, theta and z of shape (d_y,).

``sun`` needs gradients alone.  The others belong to approximate implicit differentiation (AID),
where z solves the linear system of the hypergradient (SOBA: Dagreou et al., 2022,
arXiv 2201.13409).  With subscripts for partial derivatives of f_i and g_i on one batch,

    v = g_y(x, y),    p = g_yy(x, y) z - f_y(x, y),    u = f_x(x, y) - g_xy(x, y) z

are the directions of y, z and x: descent in all three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.tasks.base import Task


def sun(task: Task, w: Variables, xi: Any, *, mu: float, gamma: float) -> Variables:
    """Return D_x, D_y and D_theta of SUN-DSBO (SUN-DSBO paper, eqs. 6a-6c) on the batch ``xi``.

    With the saddle function of eq. 5,

        Φ(x, y, θ) = μ f(x, y; ξ) + g(x, y; ξ) - g(x, θ; ξ) - ‖θ - y‖² / (2γ),

    they are D_x = ∂_x Φ, D_y = ∂_y Φ and D_θ = -∂_θ Φ: descent in x and y, ascent in θ.  With
    S = μ f(x, y) + g(x, y) - g(x, θ), that is

        D_x = S_x,    D_y = S_y + (θ - y) / γ,    D_θ = g_θ(x, θ) + (θ - y) / γ.
    """
    penalty, offered = Penalty(mu, gamma), getattr(task, "saddle", None)
    if offered is not None:
        found = offered(w["x"], w["y"], w["theta"], xi, penalty)
    else:
        found = saddle_of_losses(task, w, xi, penalty)
    return dict(zip(("x", "y", "theta"), found, strict=True))


def saddle_of_losses(
    task: Task, w: Variables, xi: Any, penalty: Penalty
) -> tuple[Tensor, Tensor, Tensor]:
    """Return D_x, D_y and D_θ of ``sun`` from the task's two losses, as new tensors.

    A task's own ``saddle`` differs from this by rounding alone.
    """
    x, y, theta = leaf(w["x"]), leaf(w["y"]), leaf(w["theta"])
    mu, gamma = penalty
    S = mu * task.upper(x, y, xi) + task.lower(x, y, xi) - task.lower(x, theta, xi)
    S_x, S_y, S_theta = gradient(S, x, y, theta)
    away = w["theta"] - w["y"]
    return S_x, S_y.add(away, alpha=1 / gamma), (-S_theta).add_(away, alpha=1 / gamma)


def soba(task: Task, w: Variables, xi: Any) -> Variables:
    """Return u, v and p of AID at one point, on the batch ``xi``.

    The gradient g_y is kept with its graph; differentiating <g_y, z> with respect to x and y gives
    the Jacobian- and the Hessian-vector product by one double backward.
    """
    x, y = leaf(w["x"]), leaf(w["y"])
    f_x, f_y = gradient(task.upper(x, y, xi), x, y)
    (v,) = gradient(task.lower(x, y, xi), y, keep_graph=True)
    jvp, hvp = gradient(v @ w["z"], x, y)
    return {"x": f_x - jvp, "y": v.detach(), "z": hvp - f_y}


def soba_first_order(task: Task, w: Variables, xi: Any) -> Variables:
    """Return u, v and p of AID at one point, with gradients in place of second derivatives.

    With d = eps^(1/3) / max(‖z‖, eps), on the same batch ``xi``,

        g_yy z ~ (g_y(x, y + d z) - g_y(x, y - d z)) / (2 d),

    and so for g_xy z with g_x.  eps is the rounding unit of the run's dtype, so that d z is 5e-3
    long in float32 and 6e-6 in float64, whatever the length of z: there the errors of a central
    difference and of rounding are balanced, at about eps^(2/3) ‖z‖, where g is smooth.  Across the
    kinks of a network with ReLU the quotient errs more, and varies more from batch to batch.
    """
    import torch

    x, y, z = leaf(w["x"]), leaf(w["y"]), w["z"]
    f_x, f_y = gradient(task.upper(x, y, xi), x, y)
    (v,) = gradient(task.lower(x, y, xi), y)
    eps = torch.finfo(z.dtype).eps
    d = eps ** (1 / 3) / z.norm().clamp(min=eps)
    ahead, behind = (leaf(w["y"] + shift) for shift in (d * z, -d * z))
    ahead_x, ahead_y = gradient(task.lower(x, ahead, xi), x, ahead)
    behind_x, behind_y = gradient(task.lower(x, behind, xi), x, behind)
    jvp, hvp = (ahead_x - behind_x) / (2 * d), (ahead_y - behind_y) / (2 * d)
    return {"x": f_x - jvp, "y": v, "z": hvp - f_y}


def lower_gradient(task: Task, w: Variables, xi: Any) -> Variables:
    """Return v of AID alone, for methods that move y before z and x."""
    y = leaf(w["y"])
    (v,) = gradient(task.lower(w["x"], y, xi), y)
    return {"y": v}


def linear_residual(task: Task, w: Variables, xi: Any) -> Variables:
    """Return p of AID alone, the residual of g_yy z = f_y."""
    y = leaf(w["y"])
    (f_y,) = gradient(task.upper(w["x"], y, xi), y)
    (g_y,) = gradient(task.lower(w["x"], y, xi), y, keep_graph=True)
    (hvp,) = gradient(g_y @ w["z"], y)
    return {"z": hvp - f_y}


def hypergradient(task: Task, w: Variables, xi: Any) -> Variables:
    """Return u of AID alone, the hypergradient if z solves g_yy z = f_y."""
    x, y = leaf(w["x"]), leaf(w["y"])
    (f_x,) = gradient(task.upper(x, w["y"], xi), x)
    (g_y,) = gradient(task.lower(x, y, xi), y, keep_graph=True)
    (jvp,) = gradient(g_y @ w["z"], x)
    return {"x": f_x - jvp}


def leaf(s: Tensor) -> Tensor:
    """Return the tensor as a variable to differentiate with respect to."""
    return s.detach().requires_grad_()


def gradient(value: Tensor, *at: Tensor, keep_graph: bool = False) -> tuple[Tensor, ...]:
    """Differentiate a scalar; zeros where it does not depend on a variable, or on none of them."""
    import torch

    if not value.requires_grad:
        return tuple(torch.zeros_like(s) for s in at)
    return torch.autograd.grad(
        value, at, create_graph=keep_graph, allow_unused=True, materialize_grads=True
    )


def product(values: Tensor, at: Tensor, vector: Tensor) -> Tensor:
    """Return the gradient of <values, vector>, and keep the graph of the values for more.

    The graph of the product itself, which ``gradient(values @ vector, at, keep_graph=True)`` would
    make, is not needed where many products are taken.
    """
    import torch

    if not values.requires_grad:
        return torch.zeros_like(at)
    (found,) = torch.autograd.grad(
        values, at, vector, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return found
