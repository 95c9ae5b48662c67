"""Range checks of options."""

import math

import pytest

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.options import require_integer, require_number, require_positive


def test_limits_themselves_are_in_range():
    for value in (2, 7):
        require_integer("task.a", value, 2, 7)
        require_number("task.a", value, 2, 7)
    require_integer("task.a", 10**6, 2)
    require_integer("task.a", 10**9, 2, 10**9)
    require_positive("task.a", 5e-324)
    require_positive("task.a", 0.5, 0.5)


@pytest.mark.parametrize("value", [1, 8, 2.5, True, "3", None, [3]])
def test_other_than_an_integer_in_range_is_refused(value):
    with pytest.raises(UsageError, match=r"^task\.a is .*: expected an integer of at least 2 and"):
        require_integer("task.a", value, 2, 7)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, -math.inf, True, "0.5", {}])
def test_other_than_a_number_in_range_is_refused(value):
    with pytest.raises(UsageError, match=r"^task\.a is .*: expected a number of at least 0 and at"):
        require_number("task.a", value, 0, 1)
    with pytest.raises(UsageError, match=r"^task\.a is .*: expected a number above 0 and at most"):
        require_positive("task.a", value, 1)


@pytest.mark.parametrize("value", [10**6 + 1, 10**10, 10**400])
def test_counts_end_somewhere_and_long_ones_are_not_echoed(value):
    sentence = r"^task\.a is \d.*: expected an integer of at least 1 and at most 1000000\.$"
    with pytest.raises(UsageError, match=sentence) as error:
        require_integer("task.a", value, 1)
    assert len(str(error.value)) < 120


def test_what_has_no_upper_limit_has_none_in_the_sentence():
    with pytest.raises(UsageError, match=r"task\.a is 0\.0: expected a number above 0\.$"):
        require_positive("task.a", 0.0)
    with pytest.raises(UsageError, match=r"task\.a is inf: expected a number of at least 0\.$"):
        require_number("task.a", math.inf, 0)
