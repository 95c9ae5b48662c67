"""Values of a setting: on a grid, at random, and finer around the best."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.sweep.axes import Choice, Range, axis

NUMBERS = st.lists(
    st.floats(1e-6, 1e6) | st.integers(1, 10**6), min_size=2, max_size=6, unique=True
)


@pytest.mark.parametrize(
    ("given", "grid"),
    [
        ([0.1, 1.0], (0.1, 1.0)),
        (["a", "b", "a"], ("a", "b", "a")),
        ([{"scale": 0.1, "power": 0.5}], ({"scale": 0.1, "power": 0.5},)),
        ({"low": 0.01, "high": 100.0}, (0.01, 0.1, 1.0, 10.0, 100.0)),
        ({"low": 0.012345, "high": 0.2, "points": 2}, (0.012345, 0.2)),
        ({"low": 1.0, "high": 2.0, "points": 3, "spacing": "linear"}, (1.0, 1.5, 2.0)),
        ({"low": -1.0, "high": 1.0, "points": 3}, (-1.0, 0.0, 1.0)),
        ({"low": 1, "high": 4, "points": 9}, (1, 2, 3, 4)),
        ({"low": 0, "high": 10, "points": 3}, (0, 5, 10)),
    ],
)
def test_a_grid(given, grid):
    assert axis("algorithm.step_x", given).grid() == grid


def test_few_digits_do_not_lead_out_of_a_range():
    values, rng = Range(0.99995, 0.99999), np.random.default_rng(0)
    found = (*values.grid(), *(values.draw(rng) for _ in range(50)))
    assert all(values.low <= value <= values.high for value in found)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (0.1, r"the values of algorithm\.step_x are 0\.1: expected a list"),
        ([], r"are \[\]: expected a list"),
        ({"low": 1.0}, "expected a list"),
        ({"low": 1.0, "high": 2.0, "point": 3}, r"'algorithm\.step_x\.point': did you mean '.*s'"),
        ({"low": 2.0, "high": 1.0}, "goes from 2 to 1: expected a low below the high"),
        ({"low": 0.0, "high": 1.0, "spacing": "log"}, "above 0 for spacing = 'log'"),
        ({"low": 1.0, "high": 2.0, "spacing": "lin"}, r"'lin': did you mean 'linear'\?"),
        ({"low": 1.0, "high": 2.0, "points": 1}, r"step_x\.points is 1: expected an integer of"),
        ({"low": "a", "high": 2.0}, r"step_x\.low is 'a': expected a number"),
        ({"low": 1.0, "high": float("inf")}, r"step_x\.high is inf: expected a number"),
    ],
)
def test_what_is_no_axis(given, complaint):
    with pytest.raises(UsageError, match=complaint):
        axis("algorithm.step_x", given)


@pytest.mark.parametrize(
    ("values", "best", "finer"),
    [
        ((1.0, 100.0, 10_000.0), 100.0, (10.0, 100.0, 1000.0)),
        ((1.0, 100.0, 10_000.0), 1.0, (1.0, 10.0)),
        ((1.0, 100.0, 10_000.0), 10_000.0, (1000.0, 10_000.0)),
        ((0.0, 1.0, 2.0), 1.0, (0.5, 1.0, 1.5)),
        ((1, 2, 3), 2, (1, 2)),  # whole: the means are 1.41 and 2.45
        (("a", "b"), "b", ("b",)),
        ((True, False), True, (True,)),
        ((0.5,), 0.5, (0.5,)),
    ],
)
def test_around_one_of_several_values(values, best, finer):
    assert Choice(values).around(best, values, 1).grid() == finer


def test_finer_values_lie_between_all_that_were_tried():
    tried = (1.0, 10.0, 100.0, 1000.0, 10_000.0)
    finer = Choice((1.0, 100.0, 10_000.0)).around(100.0, tried, 2).grid()
    assert finer == (31.62, 100.0, 316.2)


@pytest.mark.parametrize(
    ("best", "stage", "ends"),
    [
        (1.0, 1, (0.1, 10.0)),
        (1.0, 3, (0.5623, 1.778)),
        (0.01, 1, (0.01, 0.1)),
        (100.0, 1, (10.0, 100.0)),
        (30.0, 2, (9.487, 94.87)),
    ],
)
def test_around_a_value_of_a_range_lies_a_part_of_it(best, stage, ends):
    made = Range(0.01, 100.0, 3).around(best, (), stage).grid()
    assert (made[0], made[-1]) == ends


@given(values=NUMBERS, data=st.data())
def test_finer_values_stay_between_the_neighbours_and_keep_the_best(values, data):
    best = data.draw(st.sampled_from(values))
    ordered = sorted(values)
    place = ordered.index(best)
    finer = Choice(tuple(values)).around(best, values, 1).grid()
    assert best in finer
    low, high = ordered[max(0, place - 1)], ordered[min(len(ordered) - 1, place + 1)]
    assert all(low * (1 - 1e-3) <= value <= high * (1 + 1e-3) for value in finer)
    assert len(set(finer)) == len(finer)


@given(low=st.floats(1e-6, 1e3), factor=st.floats(1.01, 1e4), seed=st.integers(0, 99))
def test_drawn_values_lie_in_the_range_and_half_of_them_below_its_middle(low, factor, seed):
    found = Range(low, low * factor)
    rng = np.random.default_rng(seed)
    drawn = [found.draw(rng) for _ in range(400)]
    assert min(drawn) >= low * (1 - 1e-3)
    assert max(drawn) <= low * factor * (1 + 1e-3)
    share = np.mean(np.array(drawn) < low * np.sqrt(factor))  # 0.5 with a deviation of 0.025
    assert 0.38 < share < 0.62


def test_whole_numbers_are_drawn_whole():
    rng = np.random.default_rng(0)
    drawn = {Range(1, 4).draw(rng) for _ in range(100)}
    assert drawn == {1, 2, 3, 4}
    assert {Choice(("a", "b")).draw(rng) for _ in range(50)} == {"a", "b"}


def test_the_ends_are_known():
    assert Range(0.1, 1.0).ends_with(0.1)
    assert not Range(0.1, 1.0).ends_with(0.5)
    assert Choice((3.0, 1.0, 2.0)).ends_with(1.0)
    assert not Choice((3.0, 1.0, 2.0)).ends_with(2.0)
    assert not Choice((3.0,)).ends_with(3.0)
    assert not Choice(("a", "b")).ends_with("a")
