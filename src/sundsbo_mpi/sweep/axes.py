"""The values that one setting may take, and finer ones around the best of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sundsbo_mpi.config.settings import complete
from sundsbo_mpi.errors import UsageError, brief, unknown
from sundsbo_mpi.options import require_integer, require_number

if TYPE_CHECKING:
    import numpy as np

DIGITS = 4
"""Of numbers that are not the user's own."""
MOST_POINTS = 1000
SPACINGS = ("log", "linear")


class Axis(Protocol):
    """Values of one setting."""

    def grid(self) -> tuple[Any, ...]:
        """Return the values on a grid."""
        ...

    def draw(self, rng: np.random.Generator) -> Any:
        """Return a value drawn at random."""
        ...

    def around(self, best: Any, tried: Sequence[Any], stage: int) -> Axis:
        """Return finer values around the best one, none of them beyond the first or the last.

        Args:
            best: The value of the best setting so far.
            tried: The values of all settings so far.
            stage: The number of the stage that the finer values are for: 1, 2, ...
        """
        ...

    def ends_with(self, value: Any) -> bool:
        """Say whether a value is the smallest or largest of several numbers."""
        ...


@dataclass(frozen=True)
class Choice:
    """Values one by one, each as likely as another.

    Around one of several numbers lie itself and its means with the next smaller and larger number
    tried: geometric means where all numbers are positive, else arithmetic ones.
    """

    values: tuple[Any, ...]

    def grid(self) -> tuple[Any, ...]:
        """Return all of them."""
        return self.values

    def draw(self, rng: np.random.Generator) -> Any:
        """Return one of them."""
        return self.values[int(rng.integers(len(self.values)))]

    def around(self, best: Any, tried: Sequence[Any], stage: int) -> Choice:
        """Return the best and its means with its neighbours."""
        if not self._numbers:
            return Choice((best,))
        into, back = _scale(log=min(self.values) > 0)
        below = max((v for v in tried if v < best), default=best)
        above = min((v for v in tried if v > best), default=best)
        whole = all(isinstance(v, int) for v in self.values)
        lower, upper = (
            best if other == best else _tidy(back((into(best) + into(other)) / 2), whole)
            for other in (below, above)
        )
        return Choice(_once([lower, best, upper]))

    def ends_with(self, value: Any) -> bool:
        """Say whether it is the smallest or largest of several numbers."""
        if not self._numbers or len(set(self.values)) == 1:
            return False
        return value in (min(self.values), max(self.values))

    @property
    def _numbers(self) -> bool:
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, so many ``points`` on a grid; whole if both ends are.

    They are spaced evenly, or drawn evenly, in their logarithm unless ``spacing`` is "linear" or an
    end is not positive.  Around one of them lies a part of the range with it in its middle: half of
    it in stage 1, a quarter in stage 2, and so on.
    """

    low: float
    high: float
    points: int = 5
    spacing: str | None = None

    def grid(self) -> tuple[Any, ...]:
        """Return so many of them, both ends among them."""
        into, back = self._scale()
        first, last, count = into(self.low), into(self.high), self.points - 1
        inner = [back(first + (last - first) * i / count) for i in range(1, count)]
        return _once([self.low, *map(self._rounded, inner), self.high])

    def draw(self, rng: np.random.Generator) -> Any:
        """Return one of them."""
        into, back = self._scale()
        return self._rounded(back(float(rng.uniform(into(self.low), into(self.high)))))

    def around(self, best: Any, tried: Sequence[Any], stage: int) -> Axis:
        """Return the part of the range around the best."""
        into, back = self._scale()
        reach = (into(self.high) - into(self.low)) / 2 ** (stage + 1)
        low = self._rounded(back(into(best) - reach))
        high = self._rounded(back(into(best) + reach))
        return Range(low, high, self.points, self.spacing) if low < high else Choice((best,))

    def ends_with(self, value: Any) -> bool:
        """Say whether it is one of the two ends."""
        return value in (self.low, self.high)

    def _rounded(self, value: float) -> float:
        """Return a value with few digits, which does not leave the range by that."""
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        return min(self.high, max(self.low, _tidy(value, whole)))

    def _scale(self) -> tuple[Callable[[float], float], Callable[[float], float]]:
        return _scale(log=self.spacing != "linear" and self.low > 0)


def axis(name: str, given: Any) -> Axis:
    """Read the values of a setting: a list, or a table with ``low`` and ``high``.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(given, list) and given:
        return Choice(tuple(given))
    if not (isinstance(given, Mapping) and {"low", "high"} <= given.keys()):
        raise UsageError(
            f"the values of {name} are {brief(given)}: expected a list such as [0.01, 0.1], or a "
            "range such as {low = 0.01, high = 1.0, points = 5}."
        )
    found = Range(**complete(name, Range, given))
    for end in ("low", "high"):
        require_number(f"{name}.{end}", getattr(found, end), -math.inf)
    require_integer(f"{name}.points", found.points, 2, MOST_POINTS)
    if found.spacing not in (None, *SPACINGS):
        raise unknown(f"{name}.spacing", str(found.spacing), SPACINGS)
    if not found.low < found.high or (found.spacing == "log" and found.low <= 0):
        raise UsageError(
            f"{name} goes from {found.low:g} to {found.high:g}: expected a low below the high, and "
            "above 0 for spacing = 'log'."
        )
    return found


def _scale(*, log: bool) -> tuple[Callable[[float], float], Callable[[float], float]]:
    return (math.log, math.exp) if log else (float, float)


def _tidy(value: float, whole: bool) -> float:
    return round(value) if whole else float(f"{value:.{DIGITS}g}")


def _once(values: Iterable[float]) -> tuple[float, ...]:
    return tuple(dict.fromkeys(values))
