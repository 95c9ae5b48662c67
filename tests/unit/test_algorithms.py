import math

import bench
import oracle
import pytest

from sundsbo_mpi.algorithms import METHODS, Horizon, by_default, method
from sundsbo_mpi.algorithms.safety import MARGIN, large_gamma, safe_for
from sundsbo_mpi.algorithms.sun_dsbo import SunOptions
from sundsbo_mpi.composition.techniques import TECHNIQUES
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.base import Penalty

NAMES = {
    "sun-dsbo-se",
    "sun-dsbo-gt",
    "sun-dsbo-semi-gt",
    "sun-dsbo-non-atc-gt",
    "sun-dsbo-extra",
    "sun-dsbo-ed",
    "sun-dsbo-ed-gt",
    "sun-dsbo-extra-gt",
    "sun-dsbo-dgd",
}
NEED_ED = {"sun-dsbo-ed", "sun-dsbo-ed-gt"} | {
    name for name in bench.AID if name.startswith("sparkle-") and name != "sparkle-gt"
}
"""Those with ED or EXTRA with W twice for some variable."""


def test_the_registry_holds_the_promised_names():
    assert set(METHODS) >= NAMES | set(bench.AID)


@pytest.mark.parametrize("name", bench.SUN)
def test_a_method_has_its_techniques_and_the_options_may_name_others(name):
    expected = dict(zip(oracle.VARIABLES, oracle.METHODS[name], strict=True))
    assert bench.build(name).techniques == {v: TECHNIQUES[t] for v, t in expected.items()}
    other = bench.build(name, y="dgd").techniques
    assert other == {v: TECHNIQUES[t] for v, t in {**expected, "y": "dgd"}.items()}


@pytest.mark.parametrize(
    ("lambda_min", "unsafe"),
    [
        (1.0, set()),
        (0.0, set()),
        (-1 / 3 + 10 * MARGIN, set()),
        (-1 / 3 + MARGIN / 2, NEED_ED),
        (-1 / 3, NEED_ED),
        (-0.6, NEED_ED),
    ],
)
def test_only_exact_diffusion_needs_more_than_a_contraction(lambda_min, unsafe):
    """Classical EXTRA, with (I + W)/2, is safe on a ring of self-weight 0.2."""
    safe = safe_for(lambda_min)
    assert set(safe) == set(METHODS)
    assert {name for name, fine in safe.items() if not fine} == unsafe


def test_one_exact_diffusion_makes_a_mix_as_demanding():
    assert bench.build("sun-dsbo-gt", theta="ed").lambda_min == -1 / 3
    assert bench.build("sun-dsbo-ed", x="se", y="se", theta="se").lambda_min == -math.inf


def test_theta_starts_where_y_does():
    w, _ = by_default(METHODS["sun-dsbo-gt"]).start(bench.quadratics(task=bench.Elsewhere)[2])
    assert w["theta"].equal(w["y"])
    assert w["y"].norm() > 0


def test_the_penalty_decays_from_mu0_and_gamma_is_gamma():
    penalty = bench.build("sun-dsbo-ed", mu0=2.0, p=0.5, gamma=0.25).penalty
    assert penalty(0) == Penalty(2.0, 0.25)
    assert penalty(3) == Penalty(pytest.approx(1.0), 0.25)


def test_steps_are_scheduled_over_the_horizon():
    options = SunOptions(step_x={"theorem": 2.0}, step_y={"scale": 1.0, "power": 1.0})
    built = method("sun-dsbo-gt").build(options, Horizon(agents=9, iterations=900))
    assert built.step_sizes["x"](5) == pytest.approx(0.2)
    assert built.step_sizes["y"](4) == pytest.approx(0.2)
    assert built.step_sizes["theta"](4) == 0.01


@pytest.mark.parametrize(
    ("options", "remarks"),
    [
        ({"p": 0.1}, ()),
        ({"p": 0.1, "step_x": {"theorem": 1.0}, "step_y": {"theorem": 1.0}}, ()),
        ({"p": 0.1, "step_y": 0.02}, ("step_x differs from step_y",)),
        ({"p": 0.25}, ("p = 0.25, not",)),
        ({"p": 0.1, "mu0": 0.0}, ("mu0 = 0",)),
        ({"p": 0.1, "estimator": "storm"}, ("directions by storm",)),
        ({"p": 0.1, "x": "ed", "theta": "ed"}, ("another technique for x, theta",)),
        (
            {"p": 0.1, "step_x": {"scale": 1.0, "power": 0.5}},
            ("step_x differs from step_y", "a step varies"),
        ),
        ({"p": 0.5, "step_x": 0.3}, ("step_x differs from step_y", "p = 0.5, not")),
    ],
)
def test_a_run_outside_the_theorems_says_so_once(options, remarks):
    said = SunOptions(**options).remarks()
    assert len(said) == bool(remarks)
    assert all(remark in said[0] for remark in remarks)
    assert all("outside the theorems' assumptions" in sentence for sentence in said)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"gamma": 0.0}, r"algorithm\.gamma is 0\.0: expected a number above 0"),
        ({"gamma": -1.0}, r"algorithm\.gamma is -1\.0"),
        ({"gamma": float("nan")}, r"algorithm\.gamma is nan"),
        ({"gamma": {"scale": 1.0, "power": 0.0}}, r"algorithm\.gamma is \{"),
        ({"mu0": -0.1}, r"algorithm\.mu0 is -0\.1: expected a number of at least 0"),
        ({"p": -0.1}, r"algorithm\.p is -0\.1"),
        ({"estimator": "strom"}, r"unknown estimator 'strom': did you mean 'storm'\?"),
    ],
)
def test_options_out_of_range_are_refused(options, complaint):
    with pytest.raises(UsageError, match=complaint):
        SunOptions(**options)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"theta": "gtt"}, r"unknown technique 'gtt': did you mean 'gt'\?"),
        ({"step_theta": {"scale": 1.0}}, r"algorithm\.step_theta is"),
        ({"rho_y": "half"}, r"algorithm\.rho_y is 'half'"),
    ],
)
def test_options_that_only_the_method_can_judge_are_refused_too(options, complaint):
    with pytest.raises(UsageError, match=complaint):
        bench.build("sun-dsbo-gt", **options)


def test_an_unknown_method_is_named_beside_the_nearest():
    with pytest.raises(UsageError, match=r"unknown algorithm 'sun-dsbo-semi': did you mean 'sun-d"):
        method("sun-dsbo-semi")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("rho_x", 1.5),
        ("rho_x", {"scale": 0.5, "power": -1.0}),  # above 1 from the second iteration on
        ("rho_y", -0.1),
        ("step_theta", -1.0),
        ("step_x", math.inf),
    ],
)
def test_schedules_stay_in_their_range(option, value):
    with pytest.raises(UsageError, match=rf"^algorithm\.{option} .*is .*: expected a number"):
        method("sun-dsbo-gt").build(SunOptions(**{option: value}), Horizon(2, 10))


def test_gamma_is_judged_against_the_smoothness():
    assert large_gamma(Penalty(mu=1.0, gamma=0.49), 1.0) == ""
    said = large_gamma(Penalty(mu=1.0, gamma=0.5), 1.0)
    assert said == "gamma = 0.5 is not below 1/(2 L2) = 0.5"
    assert large_gamma(None, 1.0) == large_gamma(Penalty(1.0, 9.0), math.nan) == ""
    assert large_gamma(Penalty(1.0, math.inf), 1.0) == ""
