import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundsbo_mpi.composition.schedules import as_schedule
from sundsbo_mpi.errors import UsageError


def read(value, agents=4, iterations=100):
    return as_schedule("algorithm.step_x", value, agents=agents, iterations=iterations)


@given(value=st.floats(-10, 10) | st.integers(-3, 3), k=st.integers(0, 10**6))
def test_a_number_is_constant(value, k):
    assert read(value)(k) == value
    assert isinstance(read(value)(k), float)


@given(scale=st.floats(0.01, 10), power=st.floats(0, 2), k=st.integers(0, 10**6))
def test_scale_and_power_decay_from_iteration_zero(scale, power, k):
    schedule = read({"scale": scale, "power": power})
    assert schedule(0) == scale
    assert schedule(k) == pytest.approx(scale * math.exp(-power * math.log1p(k)), rel=1e-9)


def test_theorem_is_c_times_the_root_of_agents_over_iterations():
    schedule = read({"theorem": 3}, agents=4, iterations=100)
    assert schedule(0) == schedule(77) == pytest.approx(3 * 2 / 10)


@pytest.mark.parametrize(
    "value",
    [
        True,
        "0.1",
        None,
        [0.1],
        {},
        {"scale": 1.0},
        {"scale": 1.0, "power": "half"},
        {"scale": 1.0, "power": 0.5, "offset": 1},
        {"theorem": 1.0, "power": 0.5},
        {"theorem": "c"},
        pytest.param(10**400, id="endless"),
        math.nan,
        math.inf,
        {"scale": 1, "power": 10**400},
        {"theorem": 16**5000},
    ],
)
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(
        UsageError, match=r"^algorithm\.step_x is .*expected a number, \{scale"
    ) as refusal:
        read(value)
    assert len(str(refusal.value)) < 300
