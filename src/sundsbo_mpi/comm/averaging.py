"""What a round is for: an agent's own vector and its neighbours' become w_ii v_i + Σ_j w_ij v_j.

The order is fixed, the agent's own first and then ascending neighbours: the same vectors give the
same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.topology import Links

Average: TypeAlias = "Callable[[Tensor, Iterable[Tensor]], Tensor]"
"""(v_i, the v_j in the order of the links' sources) -> their average, a new tensor; all (d,)."""
FEW = 4
"""Neighbours: with more, what it saves to scale nothing is little, and in a running mean a late
neighbour's small news would be rounded away."""
ROUNDING = 1e-14
"""By which weights miss one that would add up to it but for their own rounding."""


def average_over(links: Links) -> Average:
    """Return how an agent averages over these links."""
    weights = list(links.sources.values())
    if len(weights) <= FEW and abs(links.own + sum(weights) - 1) <= ROUNDING:
        return partial(running_mean, shares(links.own, weights))
    return partial(weighted_sum, links.own, weights)


def shares(own: float, weights: Iterable[float]) -> list[float]:
    """Return w_ij / ω_j, with ω_j = w_ii + Σ w_il over the neighbours l up to j."""
    found, omega = [], own
    for w_ij in weights:
        omega += w_ij
        found.append(w_ij / omega)
    return found


def running_mean(shares: Sequence[float], own: Tensor, arrived: Iterable[Tensor]) -> Tensor:
    """Return the average as a running mean: m = v_i, and then m <- m + (w_ij / ω_j) (v_j - m).

    Each neighbour takes one pass over memory, and none is needed to scale v_i first.  Finite
    vectors that are equal have themselves as their mean to the last bit, which a sum of rounded
    products need not give.

    Source: West (1979), updating of a weighted mean.
    """
    mean = own
    for share, v_j in zip(shares, arrived, strict=True):
        mean = own.lerp(v_j, share) if mean is own else mean.lerp_(v_j, share)
    return own.clone() if mean is own else mean


def weighted_sum(
    own_weight: float, weights: Sequence[float], own: Tensor, arrived: Iterable[Tensor]
) -> Tensor:
    """Return the average term by term."""
    total = own * own_weight
    for w_ij, v_j in zip(weights, arrived, strict=True):
        total.add_(v_j, alpha=w_ij)
    return total
