"""Which messages a bench can measure."""

from __future__ import annotations

NUMBER, LARGEST = 4, 2**30
"""Bytes of a message: of one number of float32, and the most."""


def measurable(message: int) -> int:
    """Return a message's bytes, rounded up to whole numbers, or the most that a bench measures."""
    return min(max(-(-message // NUMBER) * NUMBER, NUMBER), LARGEST)
