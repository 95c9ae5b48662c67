"""Where the methods settle: at the closed-form penalised point, or near it, or not."""

import bench
import numpy as np
import oracle
import pytest
from lockstep import Lockstep

W = bench.ring(5, 0.5)
EXACT = (
    "sun-dsbo-gt",
    "sun-dsbo-semi-gt",
    "sun-dsbo-non-atc-gt",
    "sun-dsbo-extra",
    "sun-dsbo-ed",
    "sun-dsbo-ed-gt",
    "sun-dsbo-extra-gt",
)
"""The methods that correct the bias of heterogeneous agents."""
MU, GAMMA = 1.0, 0.5


def options(step):
    return {"step_x": step, "step_y": step, "step_theta": step, "mu0": MU, "gamma": GAMMA}


def distance(rows, solution):
    return max(np.abs(rows[v] - np.asarray(solution[v])).max() for v in ("x", "y"))


def test_the_oracle_and_the_task_agree_on_the_penalised_point():
    known = bench.quadratics()[0].reference(MU, GAMMA)["penalised"]
    point = oracle.penalised_point(oracle.Quadratic(5, bench.SEED), 5, MU, GAMMA)
    assert distance(point, known) < 1e-12


@pytest.mark.parametrize("name", EXACT)
def test_constant_steps_reach_the_penalised_point(name):
    """The slowest, non-ATC-GT, needs K = 175 for 1e-10 on all agents; 200 are made."""
    tasks = bench.quadratics()
    run = Lockstep(bench.build(name, **options(0.1)), tasks, W).run(200)
    rows = {v: run.rows(v) for v in ("x", "y")}
    assert distance(rows, tasks[0].reference(MU, GAMMA)["penalised"]) < 1e-10


@pytest.mark.parametrize("name", ["sun-dsbo-se", "sun-dsbo-dgd"])
def test_methods_without_correction_stay_away_from_it(name):
    tasks = bench.quadratics()
    run = Lockstep(bench.build(name, **options(0.1)), tasks, W).run(200)
    rows = {v: run.rows(v) for v in ("x", "y")}
    assert 1e-2 < distance(rows, tasks[0].reference(MU, GAMMA)["penalised"]) < 1


DECAYING = options({"scale": 0.2, "power": 0.5})


@pytest.mark.parametrize(
    ("name", "reached"),
    [
        ("sun-dsbo-gt", 1e-10),  # 1.7e-11 at K = 1500
        ("sun-dsbo-extra", 4e-5),  # 2.6e-5
        ("sun-dsbo-ed", 1.2e-5),  # 7.7e-6
    ],
)
def test_decaying_steps_approach_the_same_point(name, reached):
    """Steps 0.2 (1 + k)^-1/2, K = 1500, by the oracle, which the package follows (next test).

    EXTRA and ED see the change of step as a perturbation of the order of lam_k - lam_{k-1}, so
    their distance falls as k^{-3/2}; with lam_k (D^k - D^{k-1}) it would stay above 1.
    """
    problem = oracle.Quadratic(5, bench.SEED)
    start = bench.start_of(bench.quadratics())
    history = oracle.trajectory(problem, W, start, 1500, bench.setting(name, DECAYING))
    point = oracle.penalised_point(problem, 5, MU, GAMMA)
    early, late = (distance({v: history[v][k] for v in history}, point) for k in (300, 1500))
    assert late < reached
    assert late < 5**-1.4 * early


@pytest.mark.parametrize("name", ["sun-dsbo-gt", "sun-dsbo-extra", "sun-dsbo-ed"])
def test_decaying_steps_follow_the_oracle(name):
    problem, tasks = oracle.Quadratic(5, bench.SEED), bench.quadratics()
    history = oracle.trajectory(
        problem, W, bench.start_of(tasks), 200, bench.setting(name, DECAYING)
    )
    run = Lockstep(bench.build(name, **DECAYING), tasks, W).run(200)
    for v, rows in history.items():
        np.testing.assert_allclose(run.rows(v), rows[-1], rtol=0, atol=1e-12)
    # Already nearer than where differencing the unscaled directions would end.
    point = oracle.penalised_point(problem, 5, MU, GAMMA)
    assert distance({v: run.rows(v) for v in ("x", "y")}, point) < 1e-3


@pytest.mark.parametrize("name", EXACT)
def test_toy_settles_where_independent_simulations_do(name):
    """20,000 iterations of the oracle, which the package follows (test_trajectories)."""
    toy = {"step_x": 0.01, "step_y": 0.01, "step_theta": 0.1, "mu0": 0.1, "p": 0.01}
    start = {"x": np.zeros((5, 1)), "y": np.zeros((5, 2)), "theta": np.zeros((5, 2))}
    history = oracle.trajectory(
        oracle.Toy(5, entries=1),
        bench.ring(5, 1 / 3),
        start,
        20_000,
        bench.setting(name, {**toy, "gamma": 10.0}),
    )
    x, y = history["x"][-1].mean(axis=0), history["y"][-1].mean(axis=0)
    np.testing.assert_allclose([*x, *y], [0.8974353, 0.8879981, 1.0757311], rtol=0, atol=1e-6)
