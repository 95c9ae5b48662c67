"""The estimators on a direction that is easy to follow by hand: at(k, w) = w + 10 k + noise."""

import pytest
import torch

from sundsbo_mpi.composition.estimators import ESTIMATORS, moving_average
from sundsbo_mpi.composition.schedules import constant, power_decay

POINTS = [torch.tensor([1.0]), torch.tensor([4.0]), torch.tensor([-2.0])]
NOISE = [0.5, -0.25, 2.0]


def drive(name, rho):
    """Return D_hat of three iterations, and how often the direction was asked for."""
    estimator = (ESTIMATORS | {"moving-average": moving_average})[name]({"x": rho})
    memory = estimator.start({"x": POINTS[0]})
    found, calls = [], []
    for k, w in enumerate(POINTS):

        def at(j, point, noise=NOISE[k]):
            calls.append(j)
            return {"x": point["x"] + 10 * j + noise}

        D_hat, memory = estimator.update(at, k, {"x": w}, memory)
        found.append(float(D_hat["x"]))
    return found, calls


def test_minibatch_is_the_direction_at_hand():
    assert drive("minibatch", constant(0.3)) == ([1.5, 13.75, 20.0], [0, 1, 2])


def test_momentum_averages_and_starts_with_a_minibatch():
    found, calls = drive("momentum", constant(0.25))
    second = 0.75 * 1.5 + 0.25 * 13.75
    assert found == pytest.approx([1.5, second, 0.75 * second + 0.25 * 20.0])
    assert calls == [0, 1, 2]


def test_storm_takes_the_old_point_with_the_old_penalty_on_the_new_batch():
    found, calls = drive("storm", constant(0.25))
    second = 13.75 + 0.75 * (1.5 - (1.0 + 0 - 0.25))
    third = 20.0 + 0.75 * (second - (4.0 + 10 + 2.0))
    assert found == pytest.approx([1.5, second, third])
    assert calls == [0, 0, 1, 0, 2, 1]


def test_a_scheduled_weight_is_that_of_the_iteration_except_at_the_start():
    rho = power_decay(0.5, 1.0)  # 1/2, 1/4, 1/6
    found, _ = drive("momentum", rho)
    second = 3 / 4 * 1.5 + 1 / 4 * 13.75
    assert found == pytest.approx([1.5, second, 5 / 6 * second + 1 / 6 * 20.0])


def test_each_variable_has_its_own_weight():
    rho = {"x": constant(1.0), "y": constant(0.0)}
    for name in ("momentum", "storm"):
        estimator = ESTIMATORS[name](rho)
        w = {"x": torch.tensor([1.0]), "y": torch.tensor([2.0])}
        memory = estimator.start(w)
        for k in range(3):
            batch = {v: s + k for v, s in w.items()}
            D_hat, memory = estimator.update(lambda _j, _w, b=batch: b, k, w, memory)
        assert float(D_hat["x"]) == 3.0
        assert float(D_hat["y"]) == 2.0, name


def test_a_moving_average_starts_from_zero():
    found, calls = drive("moving-average", constant(0.25))
    first = 0.25 * 1.5
    second = 0.75 * first + 0.25 * 13.75
    assert found == pytest.approx([first, second, 0.75 * second + 0.25 * 20.0])
    assert calls == [0, 1, 2]


def test_a_moving_average_may_follow_a_schedule_from_the_first_iteration_on():
    found, _ = drive("moving-average", power_decay(0.5, 1.0))  # 1/2, 1/4, 1/6
    first = 1.5 / 2
    second = 3 / 4 * first + 1 / 4 * 13.75
    assert found == pytest.approx([first, second, 5 / 6 * second + 1 / 6 * 20.0])


def test_a_moving_average_leaves_other_variables_alone_and_needs_no_others():
    estimator = moving_average({"x": constant(0.5)})
    w = {v: torch.ones(1) for v in ("x", "y")}
    memory = estimator.start(w)
    assert set(memory) == {"x"}
    for D, known in (({"x": w["x"], "y": 6 * w["y"]}, (0.5, 6.0)), ({"x": w["x"]}, (0.75,))):
        D_hat, memory = estimator.update(lambda _k, _w, D=D: D, 0, w, memory)
        assert tuple(map(float, D_hat.values())) == known
    assert estimator.evaluations == 1
