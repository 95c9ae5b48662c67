"""What a round is for: the weighted mean of an agent's own vector and its neighbours'."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.topology import Links


def weighted_mean(links: Links, own: Tensor, arrived: Iterable[Tensor]) -> Tensor:
    """Return w_ii v_i + Σ_j w_ij v_j as a new tensor, the weights adding up to one.

    It is formed as a running mean: m = v_i and ω = w_ii, and then with every neighbour in turn

        ω <- ω + w_ij,   m <- m + (w_ij / ω) (v_j - m).

    Each takes one pass over memory, and none is needed to scale v_i first.  Vectors that are equal
    have themselves as their mean to the last bit, which a sum of rounded products need not give.
    The order is fixed, so the same vectors give the same bits, wherever in a message a number lies.

    Args:
        links: The weights.
        own: v_i, of shape (d,).
        arrived: v_j in the order of the links' sources, like v_i.

    Source: West (1979), updating of a weighted mean.

    Differences from the sum:
        1. Where a file's weights add up to one only within its tolerance, their shares do exactly.
    """
    mean, omega = own, links.own
    for w_ij, v_j in zip(links.sources.values(), arrived, strict=True):
        omega += w_ij
        share = w_ij / omega
        mean = own.lerp(v_j, share) if mean is own else mean.lerp_(v_j, share)
    return own.clone() if mean is own else mean
