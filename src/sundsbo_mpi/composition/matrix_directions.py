"""Second derivatives as whole matrices, for methods that send them, and what they cost.

One row costs one double backward, so these are for small problems.  All matrices are flat
tensors in row-major order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.composition.directions import gradient, leaf, product
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.tasks.base import Task

LARGEST_BYTES = 2**30
"""Of the matrices that an agent sends in one round; it holds about ten copies of them."""

ADVICE = "take a smaller task, or a method that sends only vectors, such as ma-dsbo."

MOST_ROWS = 4096
"""That an agent computes in one iteration; with 20,000 parameters they take about 20 seconds."""


def require_small(name: str, like: Tensor, *shapes: tuple[int, ...], times: int = 1) -> None:
    """Refuse a problem whose matrices are too large, or take too long to compute.

    Args:
        name: The method.
        like: A tensor of the run's dtype.
        shapes: Of the matrices that an agent sends in one round.
        times: How often an iteration computes them.

    Raises:
        UsageError: together they exceed ``LARGEST_BYTES`` or ``MOST_ROWS``.
    """
    size = like.element_size() * sum(map(math.prod, shapes))
    if size > LARGEST_BYTES:
        told = " and ".join(" x ".join(f"{d:,}" for d in shape) for shape in shapes)
        raise UsageError(
            f"{name} keeps and sends matrices of {told} numbers, {size / 2**30:,.1f} GiB in one "
            f"copy of about ten on every agent: expected at most {LARGEST_BYTES / 2**30:g} GiB; "
            f"{ADVICE}"
        )
    rows = times * sum(math.prod(shape[:-1]) for shape in shapes)
    if rows > MOST_ROWS:
        raise UsageError(
            f"{name} computes {rows:,} rows of matrices in an iteration, each by a second "
            f"differentiation of its own: expected at most {MOST_ROWS:,}; take fewer inner steps "
            f"or terms, {ADVICE}"
        )


def jacobian_residual(task: Task, w: Variables, xi: Any) -> Variables:
    """Return Z g_yy - g_xy at (x, y), where z holds Z of shape (d_x, d_y): zero if Z solves.

    Row c is the gradient in y of <g_y, Z_c> - (g_x)_c: one double backward for each entry of x,
    with a Hessian- and a Jacobian-vector product in each.
    """
    x, y = leaf(w["x"]), leaf(w["y"])
    g_x, g_y = gradient(task.lower(x, y, xi), x, y, keep_graph=True)
    return {"z": _jacobian(w["z"].reshape(len(x), len(y)) @ g_y - g_x, y).flatten()}


def lower_cross(task: Task, w: Variables, xi: Any) -> tuple[Tensor, Tensor]:
    """Return g_y, and g_xy of shape (d_x, d_y): one double backward for each entry of x."""
    x, y = leaf(w["x"]), leaf(w["y"])
    g_x, g_y = gradient(task.lower(x, y, xi), x, y, keep_graph=True)
    return g_y.detach(), _jacobian(g_x, y)


def lower_hessian(task: Task, w: Variables, xi: Any) -> Tensor:
    """Return g_yy of shape (d_y, d_y): one double backward for each entry of y."""
    y = leaf(w["y"])
    (g_y,) = gradient(task.lower(w["x"], y, xi), y, keep_graph=True)
    return _jacobian(g_y, y)


def _jacobian(values: Tensor, at: Tensor) -> Tensor:
    """Return the matrix with the gradient of each value as a row."""
    import torch

    return torch.stack([product(value, at, torch.ones_like(value)) for value in values])
