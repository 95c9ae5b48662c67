"""Derivatives by autograd against quotients of differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch

from sundsbo_mpi.composition.directions import gradient, leaf
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    Loss = Callable[[Tensor, Tensor], Tensor]

LENGTHS = (1e-4, 1e-5, 1e-6)
"""Of the steps of every entry; the best one counts: a long one may cross a kink, or feel the
curvature, and a short one rounding."""
SHORT = (1e-6, 1e-7, 1e-8)
"""The same for differences of gradients, which jump at kinks."""
DIRECTIONS = 2
"""In each variable."""
TOLERANCE = 1e-5
"""Relative; smooth losses agree to about 1e-9."""
SMALL = 1e-4
"""Times the loss: what counts beside a smaller slope, of which rounding leaves few digits."""


class Apart(NamedTuple):
    """Where the slope of a loss by its gradient is farthest from that by differences."""

    error: float
    """Relative."""
    variable: str
    slope: float
    quotient: float


def farthest_apart(
    loss: Loss, at: tuple[Tensor, Tensor], lengths: tuple[float, ...] = LENGTHS
) -> Apart:
    """Compare the slopes of a loss along random directions.

    A direction lies in x or in y alone, so that neither hides the other.
    """
    rng = torch.Generator().manual_seed(1)
    x, y = map(leaf, at)
    value = loss(x, y)
    slopes, floor = gradient(value, x, y), SMALL * (1 + abs(value.item()))
    found = []
    for place, variable in enumerate("xy"):
        for _ in range(DIRECTIONS):
            d = torch.randn(len(at[place]), generator=rng, dtype=at[place].dtype)
            slope = float(slopes[place] @ d)
            for h in lengths:
                quotient = _difference(loss, at, place, d * h) / (2 * h)
                size = floor + max(abs(quotient), abs(slope))
                error = abs(quotient - slope) / size if math.isfinite(size) else math.inf
                found.append(Apart(error, variable, slope, quotient))
    best = [min(found[i : i + len(lengths)]) for i in range(0, len(found), len(lengths))]
    return max(best)


def require_gradient(name: str, loss: Loss, at: tuple[Tensor, Tensor]) -> float:
    """Return the largest relative error of the slopes of a loss.

    Raises:
        UsageError: a slope by its gradient is not that of its values.
    """
    error, variable, slope, quotient = farthest_apart(loss, at)
    if not error <= TOLERANCE:
        raise UsageError(
            f"{name}() of the task has the slope {slope:.6g} along a random direction of "
            f"{variable} by its gradient, but {quotient:.6g} by differences of its values: "
            "look for a .detach(), .data, .item() or torch.no_grad() in it, a backward() "
            "written by hand, or numbers that are rounded on the way."
        )
    return error


@torch.no_grad()
def _difference(loss: Loss, at: tuple[Tensor, Tensor], place: int, step: Tensor) -> float:
    ahead, behind = list(at), list(at)
    ahead[place], behind[place] = at[place] + step, at[place] - step
    return float(loss(*ahead) - loss(*behind))
