"""Means and deviations as text: a line has one unit, numbers have four digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sundsbo_mpi.statistics import Spread
from sundsbo_mpi.texttable import DASH, number

Units = Sequence[tuple[str, float]]
SECONDS: Units = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
BYTES: Units = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
RATES: Units = (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0))
PERCENT: Units = (("%", 0.01),)
PLAIN: Units = (("", 1.0),)
ROUNDING = 1e-9


def line(name: str, values: Sequence[Spread], units: Units = PLAIN) -> tuple[str, ...]:
    """Return a line: its name with the unit, and one text for each value.

    The unit is the largest of which the median value has at least one.
    """
    known = [abs(value.mean) for value in values if math.isfinite(value.mean) and value.mean]
    middle = float(np.median(known)) if known else units[-1][1]
    unit, size = next((u for u in units if u[1] <= middle * (1 + ROUNDING)), units[-1])
    told = f"{name} ({unit})" if unit else name
    return told, *(_text(value, size) for value in values)


def _text(value: Spread, size: float) -> str:
    if math.isnan(value.mean):
        return DASH
    std = value.std / size
    deviation = f" ± {std:{'.2g' if std < 100 else '.0f'}}" if std > 0 else ""
    mean = value.mean / size
    return (number(mean) if abs(mean) < 1e4 else f"{mean:.0f}") + deviation
