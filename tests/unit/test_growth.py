"""Growth without bound is told from other growth, and told in time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundsbo_mpi.diagnosis.growth import Growth

EVERY = (1, 7, 50)
FINE = {
    "a constant": lambda k: 3.0,
    "zero": lambda k: 0.0,
    "linear": lambda k: 1e-3 * k,
    "cubic": lambda k: 1e-9 * (k + 1.0) ** 3,
    "to a limit, from far below": lambda k: 5.0 - 4.999999 * math.exp(-k / 100),
    "to a limit, like gradient descent": lambda k: (1 - 0.99**k) ** 2,
    "through zero": lambda k: math.cos(k / 30),
    "falling below zero": lambda k: 1.0 - 2.0 * (1 - math.exp(-k / 200)),
    "falling": lambda k: math.exp(-k / 10),
    "one outlier": lambda k: 1e9 if k // 50 == 4 else 1.0,
    "up and down": lambda k: 1e4 * math.exp(-((k / 500 - 1) ** 2)),
}


def first_word(series, rows, every):
    """Return (k, since) of the first row at which growth is called unbounded, if at any."""
    growth = Growth()
    for row in range(rows):
        since = growth.since(row * every, series(row * every))
        if since is not None:
            return row * every, since
    return None


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("series", FINE.values(), ids=FINE)
def test_growth_that_slows_down_or_ends_is_let_pass(series, every):
    assert first_word(series, 2000 // every, every) is None


@given(
    factor=st.floats(1.02, 1e6),
    first=st.floats(1e-12, 1e6),
    sign=st.sampled_from([1, -1]),
    every=st.sampled_from(EVERY),
)
def test_exponential_growth_is_called_so_before_a_billionfold(factor, first, sign, every):
    k, since = first_word(lambda k: sign * first * factor ** (k // every), 2000, every)
    grown = factor ** (k // every)
    assert since < k
    assert factor ** ((k - since) // every) > 2**9 / 1.01
    assert grown <= max(1e9, 1.01 * factor**12)


def test_what_went_before_does_not_hide_it():
    """A loss that falls for long and then explodes."""
    k, since = first_word(lambda k: 2.3 * math.exp(-k / 50) + 1e-12 * 1.05**k, 2000, 10)
    assert since > 500
    assert k < 900


def test_noise_does_not_hide_it():
    def noisy(k):
        return 1e-3 * 1.02**k * (1 + 0.8 * math.sin(1.7 * k))

    assert first_word(noisy, 300, 5)


def test_numbers_that_are_not_finite_are_passed_over():
    growth = Growth()
    assert [growth.since(k, v) for k, v in enumerate([math.nan, math.inf, 0.0])] == [None] * 3
    assert first_word(lambda k: math.nan if k % 20 == 0 else 2.0**k, 60, 1)


def test_it_rises_while_it_goes_on_doubling():
    growth, rises = Growth(), {}
    for k, value in enumerate([1.0, 1.5, 3.9, 4.0, 9.0, 9.0, 9.0, 9.0, 9.0]):
        growth.since(k, value)
        rises[k] = growth.rises(k)
    assert rises == {k: 3 <= k <= 6 for k in range(9)}
