"""Words for numbers of things, as messages and tables have them."""

from __future__ import annotations


def number_of(count: int, thing: str) -> str:
    """Return how many there are: ``1 rank``, ``2 ranks``."""
    return f"{count} {thing}{'s' * (count != 1)}"
