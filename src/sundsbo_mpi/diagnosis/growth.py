"""Whether a series of numbers grows without bound, judged while it is still finite."""

from __future__ import annotations

import math

DOUBLINGS = 10
"""The growth that is looked at: a thousandfold."""
ROWS = 5
"""Evaluations that it must be spread over."""
SLOWING = 1.5
"""Growth whose second half takes so many times as long as its first may come to an end."""


class Growth:
    """Watches one series, evaluation by evaluation.

    Growth without bound is growth to the 2^``DOUBLINGS``-fold whose later doublings come about as
    fast as the earlier ones: exponential growth is, that of a power of k below about the eighth and
    that which nears a limit are not.  What is compared is the largest value so far, so that noise
    and a passage through zero change nothing.  The memory is as long as there were doublings.
    """

    def __init__(self) -> None:
        self._first = 0.0
        self._reached: list[int] = []  # when 1, 2, 4, ... times the first value were reached

    def since(self, k: int, value: float) -> int | None:
        """Take in the value of iteration k >= 0; return since when the series grows without bound.

        That is None while it does not.  A value that is not finite is passed
        over.
        """
        value = abs(value)
        if not math.isfinite(value) or value == 0.0:
            return None
        if not self._reached:
            self._first = value
        doublings = math.floor(math.log2(value) - math.log2(self._first))
        if doublings < 1 and len(self._reached) <= 1:
            self._reached = [k]  # the last time before it first doubled
        self._reached += [k] * (doublings + 1 - len(self._reached))
        begin = self._begin()
        if begin is None:
            return None
        middle = self._reached[(begin + len(self._reached) - 1) // 2]
        since = self._reached[begin]
        return since if k - middle <= SLOWING * (middle - since) else None

    def rises(self, k: int) -> bool:
        """Whether the series has become four times the first value, and more not long before k."""
        if len(self._reached) < 3:
            return False
        return k - self._reached[-1] <= self._reached[-1] - self._reached[-3]

    def _begin(self) -> int | None:
        """Return where in ``_reached`` the last growth begins that is large and slow enough."""
        begin = len(self._reached) - 1 - DOUBLINGS
        while begin >= 0 and len(set(self._reached[begin:])) < ROWS:
            begin -= 1
        return begin if begin >= 0 else None
