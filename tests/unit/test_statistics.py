"""Statistics against scipy's own and against numbers worked out by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from sundsbo_mpi.reproduce.speedup import fit, verdict
from sundsbo_mpi.statistics import deviations, paired, spread

OURS = {0: 80.0, 1: 81.5, 2: 79.25, 3: 83.0}
OTHERS = {3: 81.0, 2: 78.0, 1: 81.0, 0: 79.5, 7: 12.0}


def test_spread_by_hand():
    assert spread([1.0, 2.0, 4.0]) == (7 / 3, pytest.approx(math.sqrt(7 / 3)), 3)
    assert math.isnan(spread([5.0]).std)
    assert math.isnan(spread([]).mean)


def test_paired_interval_is_that_of_the_paired_t_test():
    found = paired(OURS, OTHERS)
    seeds = sorted(OURS)
    test = stats.ttest_rel([OURS[s] for s in seeds], [OTHERS[s] for s in seeds])
    interval = test.confidence_interval(0.95)
    assert found.pairs == 4
    np.testing.assert_allclose(found[:3], (1.0625, interval.low, interval.high))


def test_pairing_matters():
    """The seeds differ far more than the methods: an unpaired interval would hold zero."""
    ours = {s: 10.0 * s + 1 + 0.1 * (-1) ** s for s in range(6)}
    found = paired(ours, {s: 10.0 * s for s in range(6)})
    assert found.low > 0.5
    unpaired = stats.ttest_ind(list(ours.values()), [10.0 * s for s in range(6)])
    assert unpaired.confidence_interval(0.95).low < 0


def test_too_few_pairs():
    assert math.isnan(paired({0: 1.0}, {0: 0.5}).low)
    assert paired({0: 1.0}, {1: 0.5}).pairs == 0


def test_deviations():
    assert deviations(79.0, 80.0, 0.5) == -2
    assert math.isnan(deviations(79.0, 80.0, math.nan))
    assert math.isnan(deviations(79.0, 80.0, 0.0))


def test_a_power_law_is_found_whatever_factor_each_seed_has():
    n = np.array([1.0, 2, 4, 8])
    slope = fit({s: list(zip(n, (3.0 + s) * n**-0.5, strict=True)) for s in range(3)})
    np.testing.assert_allclose(slope, -0.5, atol=1e-12)


def test_with_one_seed_the_interval_is_that_of_the_regression():
    rng = np.random.default_rng(1)
    x = np.array([1.0, 2, 4, 8, 16])
    y = x**-0.7 * np.exp(0.1 * rng.standard_normal(5))
    found = fit({0: list(zip(x, y, strict=True))})
    line = stats.linregress(np.log(x), np.log(y))
    half = stats.t.ppf(0.975, 3) * line.stderr
    np.testing.assert_allclose(found, (line.slope, line.slope - half, line.slope + half))


def test_with_seeds_the_interval_is_that_of_least_squares_with_an_intercept_each():
    rng = np.random.default_rng(2)
    x = np.tile([1.0, 2, 4, 8], 3)
    seed = np.repeat([0, 1, 2], 4)
    y = (2.0 + seed) * x**-0.4 * np.exp(0.1 * rng.standard_normal(12))
    design = np.column_stack([np.log(x), *(seed == s for s in range(3))]).astype(float)
    coefficients, residual, *_ = np.linalg.lstsq(design, np.log(y))
    error = np.sqrt(residual[0] / (12 - 4) * np.linalg.inv(design.T @ design)[0, 0])
    found = fit({s: [(x[i], y[i]) for i in range(12) if seed[i] == s] for s in range(3)})
    half = stats.t.ppf(0.975, 8) * error
    expected = coefficients[0], coefficients[0] - half, coefficients[0] + half
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("powers", "grows", "word"),
    [
        ((-0.5, -0.6), False, "within"),
        ((-0.2, -0.21), False, "contradicted"),
        ((-1.0, -1.1), False, "within"),
        ((-0.3, -0.4), True, "within"),
        ((-3.0, -3.1), True, "contradicted"),
    ],
)
def test_verdicts(powers, grows, word):
    x = np.array([1.0, 2, 4, 8])
    slope = fit({s: list(zip(x, x**power, strict=True)) for s, power in enumerate(powers)})
    assert word in verdict(slope, -2.0 if grows else -0.5, grows=grows)


def test_no_interval_no_verdict():
    assert "open" in verdict(fit({0: [(1.0, 2.0), (2.0, 1.0)]}), -0.5, grows=False)
    assert "open" in verdict(fit({}), -0.5, grows=False)
