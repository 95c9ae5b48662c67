"""The AID methods as they are put together: start, techniques, orders, and what they refuse."""

import bench
import oracle_aid
import pytest
import torch

from sundsbo_mpi.algorithms import METHODS, by_default, method
from sundsbo_mpi.algorithms.safety import safe_for
from sundsbo_mpi.composition import Composed
from sundsbo_mpi.composition.staged import Staged
from sundsbo_mpi.composition.techniques import TECHNIQUES
from sundsbo_mpi.errors import UsageError

SPARKLE = tuple(name for name in bench.AID if name.startswith("sparkle-"))


def techniques_of(algorithm):
    stages = algorithm.stages if isinstance(algorithm, Staged) else (algorithm,)
    return {v: t for stage in stages for v, t in stage.techniques.items()}


@pytest.mark.parametrize("order", ["gauss-seidel", "one-pass"])
@pytest.mark.parametrize("name", SPARKLE)
def test_sparkle_names_the_lower_level_first(name, order):
    lower, _, upper = name.removeprefix("sparkle-").partition("-")
    short = {"gt": "gt", "ed": "ed", "extra": "suda-extra"}
    expected = dict.fromkeys(("y", "z"), TECHNIQUES[short[lower]])
    expected["x"] = TECHNIQUES[short[upper or lower]]
    assert techniques_of(bench.build(name, order=order)) == expected


def test_sun_dsbo_names_the_upper_level_first():
    assert bench.build("sun-dsbo-ed-gt").techniques["x"] == TECHNIQUES["ed"]
    assert techniques_of(bench.build("sparkle-ed-gt"))["x"] == TECHNIQUES["gt"]


def test_y_goes_first_then_z_then_x_unless_told_otherwise():
    stages = by_default(METHODS["sparkle-ed"]).stages
    assert [tuple(stage.techniques) for stage in stages] == [("y",), ("z",), ("x",)]
    assert isinstance(bench.build("sparkle-ed", order="one-pass"), Composed)


@pytest.mark.parametrize("name", bench.AID)
def test_everything_starts_where_the_task_does_and_z_at_zero(name):
    (task,) = bench.quadratics(1, task=bench.Elsewhere)
    w, state = by_default(METHODS[name]).start(task)
    x, y = task.start()
    assert torch.equal(w["x"], x)
    assert torch.equal(w["y"], y)
    assert torch.equal(w["z"], torch.zeros_like(y))
    assert {v: s.shape for v, s in state.D_hat.items()} == {v: s.shape for v, s in w.items()}


@pytest.mark.parametrize("name", bench.AID)
def test_no_penalty_is_claimed(name):
    assert by_default(METHODS[name]).penalty(3) is None


def test_no_method_has_an_option_that_it_ignores():
    steps = {"lazy", "step_x", "step_y", "step_z"}
    own = {name: bench.option_names(name) for name in bench.AID}
    shared = set.intersection(*own.values())
    assert shared >= steps
    assert {name: options - shared for name, options in own.items()} == {
        name: {"moving_average", "order"}
        if name in SPARKLE
        else {"projection_radius"}
        if name == "sldbo"
        else {"moving_average"}
        for name in oracle_aid.METHODS
    }


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("sparkle-gt", {"order": "jacobi"}, r"unknown order 'jacobi'.*gauss-seidel, one-pass"),
        (
            "sparkle-gt",
            {"moving_average": 1.5},
            r"algorithm\.moving_average in iteration 0 is 1\.5: .* at most 1",
        ),
        ("sparkle-ed", {"step_z": -0.1}, r"algorithm\.step_z in iteration 0 is -0\.1"),
        ("d-soba", {"moving_average": -0.1}, r"algorithm\.moving_average in iteration 0 is -0\.1"),
        ("sldbo", {"projection_radius": 0.0}, r"algorithm\.projection_radius is 0\.0: expected"),
        ("sldbo", {"projection_radius": float("nan")}, r"projection_radius is nan"),
        ("sldbo", {"projection_radius": {"scale": 1.0, "power": 0.0}}, r"projection_radius is \{"),
    ],
)
def test_what_makes_no_sense_is_refused(name, options, complaint):
    with pytest.raises(UsageError, match=complaint):
        bench.build(name, **options)


def test_a_mix_is_as_demanding_as_its_strictest_part():
    unsafe = {name for name, safe in safe_for(-1 / 3).items() if not safe and name in bench.AID}
    assert unsafe == set(SPARKLE) - {"sparkle-gt"}
    for name in SPARKLE:
        orders = (bench.build(name, order=order) for order in ("gauss-seidel", "one-pass"))
        assert len({algorithm.lambda_min for algorithm in orders}) == 1


def test_the_rows_of_the_comparison_table():
    for name in bench.AID:
        entry = method(name)
        expected = ("S.C.", "BG*/Free") if name in SPARKLE else ("-", "-")
        expected = ("S.C.", "BG*/BGD") if name == "d-soba" else expected
        assert (entry.convexity, entry.heterogeneity) == expected
