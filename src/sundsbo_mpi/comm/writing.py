"""The parts of a message, written straight into where it is sent from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sundsbo_mpi.outgoing import Difference, Part


def write(parts: Sequence[Part], places: Sequence[Tensor]) -> None:
    """Write every part into a tensor of its length and dtype."""
    for part, place in zip(parts, places, strict=True):
        if isinstance(part, Difference):
            _subtract(part, place)
        else:
            place.copy_(part)


def _subtract(difference: Difference, place: Tensor) -> None:
    a, c, b = difference.a, difference.c, difference.b
    if isinstance(a, Difference):
        _subtract(a, place)
        place.sub_(b, alpha=c)
    else:
        torch.sub(a, b, alpha=c, out=place)
