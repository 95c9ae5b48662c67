"""Where the remaining baselines settle: at the solution, at their own, or beside it.

Long runs are the oracle's, which the package follows (test_others_trajectories).
"""

import bench
import numpy as np
import oracle
import oracle_aid
import oracle_others
import pytest

AGENTS = 10
W = bench.ring(AGENTS, 0.5)
PROBLEM = oracle.Quadratic(AGENTS, bench.SEED)
TASKS = bench.quadratics(AGENTS)
START = bench.start_of(TASKS)
SOLUTION = oracle_aid.bilevel_point(PROBLEM)
"""Of the bilevel problem of all agents."""


def steps(**sizes):
    return {v: lambda _k, size=size: size for v, size in sizes.items()}


def bias(history, point=SOLUTION):
    """Return the distance of the averaged iterate."""
    return max(np.abs(history.now[v].mean(axis=0) - point[v]).max() for v in ("x", "y"))


def distance(rows, point):
    """Return the largest distance of any agent."""
    return max(np.abs(rows[v] - np.asarray(point[v])).max() for v in ("x", "y"))


def test_the_oracle_and_the_task_agree_on_the_solution():
    assert distance(SOLUTION, TASKS[0].reference(None, None)["bilevel"]) < 1e-12


@pytest.mark.parametrize("inner", [1, 3])
def test_dsgda_gt_reaches_its_penalised_point(inner):
    """On all agents: 1.0e-12 after 1,000 iterations; a step twice as long is slower."""
    lam = steps(x=0.05, y=0.05, z=0.05)
    history = oracle_others.dsgda_gt(PROBLEM, W, START, 1000, lam=lam, nu=0.5, inner=inner)
    penalty = bench.build("dsgda-gt", nu=0.5).penalty(1000)
    known = TASKS[0].reference(*penalty)
    assert distance(history.now, known["penalised"]) < 1e-9
    assert distance(history.now, known["bilevel"]) > 0.05


def test_the_bias_of_dsgda_gt_is_that_of_its_penalty():
    found = []
    for nu in (0.1, 0.01):
        point = TASKS[0].reference(nu, np.inf)["penalised"]
        found.append(distance({v: s.numpy()[None] for v, s in point.items()}, SOLUTION))
    assert found[0] / found[1] == pytest.approx(10, rel=0.2)


def ma_dsbo(problem, size, iterations):
    lam = steps(x=size, y=size, z=size)
    return oracle_others.ma_dsbo(
        problem, W, START, iterations, lam=lam, theta=lambda _k: 0.2, T=5, N=5
    )


def dsbo(problem, size, iterations):
    lam = steps(x=size, y=size, z=size)
    return oracle_others.dsbo(problem, W, START, iterations, lam=lam, T=5, N=5)


ALIKE = oracle.Quadratic(AGENTS, bench.SEED, h=0.0)
ALIKE_SOLUTION = oracle_aid.bilevel_point(ALIKE)


@pytest.mark.parametrize("method", [ma_dsbo, dsbo])
def test_methods_without_tracking_have_a_bias_that_shrinks_with_the_step(method):
    """MA-DSBO: 0.121 at 0.1 and 0.056 at 0.025; DSBO: 0.132 and 0.054."""
    long, short = (bias(method(PROBLEM, size, round(40 / size))) for size in (0.1, 0.025))
    assert 0.05 < long < 0.2
    assert 2 * short < long < 4 * short


@pytest.mark.parametrize("method", [ma_dsbo, dsbo])
def test_they_are_exact_where_the_agents_are_alike(method):
    assert distance(method(ALIKE, 0.1, 800).now, ALIKE_SOLUTION) < 1e-8


NEUMANN = {"rho": lambda _k: 0.3, "eta": 0.9, "L": 6.0}


@pytest.mark.parametrize("storm", [False, True])
def test_a_local_neumann_series_is_biased_however_small_the_step(storm):
    """And exact where the agents are alike, up to (1 - 1/L)^J."""
    common = NEUMANN | {"J": 100, "storm": storm}
    long, short = (
        bias(oracle_others.neumann(PROBLEM, W, START, 800, lam=steps(x=s, y=s), **common))
        for s in (0.1, 0.05)
    )
    assert long > 1e-2
    assert short == pytest.approx(long, rel=1e-3)
    history = oracle_others.neumann(ALIKE, W, START, 800, lam=steps(x=0.1, y=0.1), **common)
    assert distance(history.now, ALIKE_SOLUTION) < 1e-7


def test_a_short_neumann_series_is_biased_even_where_agents_are_alike():
    common = NEUMANN | {"storm": False}
    found = [
        bias(
            oracle_others.neumann(ALIKE, W, START, 400, lam=steps(x=0.1, y=0.1), J=J, **common),
            ALIKE_SOLUTION,
        )
        for J in (3, 10, 30)
    ]
    assert found[0] > 3 * found[1] > 9 * found[2]


def test_gossip_dsbo_approaches_the_solution_with_smaller_steps_and_weights():
    """0.17 with 0.1 and 0.038 with a quarter of it: its averages forget new samples' spread."""
    problem = oracle.Quadratic(AGENTS, bench.SEED, d_x=2, d_y=3)
    start = bench.start_of(bench.quadratics(AGENTS, d_x=2, d_y=3))
    series = {"b": 20, "L": 4.0}
    found = []
    for size in (0.1, 0.025):
        lam, beta = steps(x=size, y=size), lambda _k, size=size: size
        history = oracle_others.gossip_dsbo(
            problem, W, start, round(40 / size), lam=lam, beta=beta, **series
        )
        found.append(bias(history, oracle_aid.bilevel_point(problem)))
    assert found[0] > 3.5 * found[1]


def test_gnsd_reaches_the_minimum_of_the_merged_loss_and_d_psgd_does_not():
    H = PROBLEM.Q.mean(axis=0) + PROBLEM.A.mean(axis=0)
    right = oracle._each(PROBLEM.Q, PROBLEM.t) + oracle._each(PROBLEM.B, START["x"]) + PROBLEM.c
    point = np.linalg.solve(H, right.mean(axis=0))
    lam, y = steps(x=0.02, y=0.02), {}
    for tracked in (False, True):
        history = oracle_others.single_level(
            PROBLEM, W, START, 1000, lam=lam, trained=("y",), tracked=tracked
        )
        y[tracked] = history.now["y"]
    assert np.abs(y[True] - point).max() < 1e-10
    assert 1e-2 < np.abs(y[False] - point).max() < 1


def test_meha_settles_where_its_penalty_says():
    problem = oracle.Quadratic(1, bench.SEED)
    start = bench.start_of(bench.quadratics(1))
    history = oracle_others.meha(
        problem, start, 2000, lam=steps(x=0.1, y=0.1, theta=0.1), mu=lambda _k: 0.5, gamma=0.5
    )
    point = oracle.penalised_point(problem, 1, 0.5, 0.5)
    assert distance(history.now, point) < 1e-9
