"""Means, deviations and paired comparisons over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

CONFIDENCE = 0.95


class Spread(NamedTuple):
    """Mean and sample standard deviation (divisor size - 1) of ``size`` values."""

    mean: float
    std: float
    size: int


class Interval(NamedTuple):
    """A mean difference of ``pairs`` pairs and its 95 % confidence interval."""

    mean: float
    low: float
    high: float
    pairs: int


def spread(values: Iterable[float]) -> Spread:
    """Summarise values; the mean of none and the deviation of fewer than two are NaN."""
    found = np.array(list(values), dtype=np.float64)
    mean = float(found.mean()) if found.size else math.nan
    std = float(found.std(ddof=1)) if found.size > 1 else math.nan
    return Spread(mean, std, found.size)


def paired(ours: Mapping[int, float], others: Mapping[int, float]) -> Interval:
    """Compare two methods seed by seed, where the same seed means the same split of the data.

    The interval is that of Student's t for the mean of the differences; without two pairs, or with
    a value that is not finite, its ends are NaN.

    Args:
        ours: A value for every seed.
        others: Likewise; only seeds that both have count.
    """
    from scipy.stats import t

    seeds = sorted(ours.keys() & others.keys())
    differences = spread(ours[seed] - others[seed] for seed in seeds)
    if differences.size < 2:
        return Interval(differences.mean, math.nan, math.nan, differences.size)
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, differences.size - 1))
    half = quantile * differences.std / math.sqrt(differences.size)
    mean = differences.mean
    return Interval(mean, mean - half, mean + half, differences.size)


def deviations(mean: float, printed_mean: float, printed_std: float) -> float:
    """Return the difference from a printed mean in units of the printed deviation."""
    return (mean - printed_mean) / printed_std if printed_std > 0 else math.nan
