"""The remaining baselines, driven in lockstep, against the dense recursions of their oracle."""

import bench
import numpy as np
import oracle
import oracle_others
import others
import pytest
import torch
from lockstep import Lockstep

ITERATIONS = 30


class MergedBoth(bench.Elsewhere):
    single_level_variables = ("x", "y")


def follow(name, tasks, W, **changes):
    """Run the package and the oracle side by side; they must agree all along."""
    options = bench.lively(name, **changes)
    history = others.history(name, options, tasks, W, ITERATIONS)
    run = Lockstep(bench.build(name, len(tasks), ITERATIONS, **options), tasks, W)
    assert set(run.points[0]) == set(history)
    for k in range(1, ITERATIONS + 1):
        run.iterate()
        for v, rows in history.items():
            own = run.rows(v)
            np.testing.assert_allclose(
                own, rows[k].reshape(own.shape), rtol=0, atol=1e-10, err_msg=f"{v} at {k}"
            )
    return run


@bench.every_other
def test_they_follow_their_recursion(name, variant):
    tasks = bench.quadratics(task=bench.Elsewhere, noise=0.2)
    run = follow(name, tasks, bench.uneven(), **variant)
    assert np.ptp(run.rows("y"), axis=0).max() > 1e-6, "agents differ"


@bench.every_other
def test_they_mix_with_the_lazy_matrix_as_with_any_other(name, variant):
    lazy = (np.eye(5) + bench.ring(5, 0.1)) / 2
    follow(name, bench.quadratics(task=bench.Merged, noise=0.1), lazy, **variant)


@pytest.mark.parametrize("name", others.SINGLE_LEVEL)
def test_single_level_methods_train_what_the_task_says_and_leave_the_rest(name):
    only_y = bench.quadratics(task=bench.Elsewhere, noise=0.2)
    run = follow(name, only_y, bench.uneven())
    np.testing.assert_array_equal(run.rows("x"), bench.start_of(only_y)["x"])
    follow(name, bench.quadratics(task=MergedBoth, noise=0.2), bench.uneven())


MEHA = {
    "step_x": {"scale": 0.05, "power": 0.3},
    "step_y": 0.08,
    "step_theta": 0.06,
    "mu0": 1.5,
    "p": 0.25,
    "gamma": 0.5,
}


def test_meha_equals_a_loop_in_numpy():
    (task,) = tasks = bench.quadratics(1, task=bench.Elsewhere, noise=0.2)
    run = Lockstep(bench.build("meha", 1, **MEHA), tasks, np.eye(1)).run(ITERATIONS)
    history = oracle_others.meha(
        oracle.Quadratic(1, bench.SEED),
        bench.start_of(tasks),
        ITERATIONS,
        others.noise_of(tasks),
        lam={v: bench.function(MEHA[f"step_{v}"]) for v in ("x", "y", "theta")},
        mu=lambda k: 1.5 / (1 + k) ** 0.25,
        gamma=0.5,
    )
    assert run.rounds == 0
    for v, rows in history.items():
        np.testing.assert_allclose(run.rows(v), rows[-1], rtol=0, atol=1e-10)
    assert bench.build("meha", 1, **MEHA).penalty(0) == (1.5, 0.5)
    assert torch.equal(bench.build("meha", 1).start(task)[0]["theta"], task.start()[1])
