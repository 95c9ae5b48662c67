"""Every method, driven in lockstep, against the dense recursions of the oracle."""

import bench
import numpy as np
import oracle
import oracle_aid
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lockstep import Lockstep

from sundsbo_mpi.algorithms import METHODS
from sundsbo_mpi.composition.techniques import TECHNIQUES

ITERATIONS = 30
W = bench.uneven()
TOY_W = bench.ring(5, 1 / 3)
TOY = {
    "step_x": 0.01,
    "step_y": 0.01,
    "step_theta": 0.1,
    "mu0": 0.1,
    "p": 0.01,
    "gamma": 10.0,
}
CONSTANT = {"step_x": 0.03, "step_y": 0.05, "step_theta": 0.04, "mu0": 1.0, "gamma": 0.5}
TOLERANCE = {"d-soba-fo": 1e-8}
"""1e-12 but for finite differences, which are exact to about eps^(2/3) on a quadratic."""


def assert_same(run, history, tolerance=1e-12):
    assert set(run.points[0]) == set(history)
    for v, rows in history.items():
        np.testing.assert_allclose(run.rows(v), rows[run.k], rtol=0, atol=tolerance, err_msg=v)


def follow(name, options, tasks, problem, weights, iterations=ITERATIONS):
    """Run the package and the oracle side by side; they must agree all along."""
    history = bench.history_of(name, options, tasks, problem, weights, iterations)
    run = Lockstep(bench.build(name, len(tasks), iterations, **options), tasks, weights)
    for _ in range(iterations):
        run.iterate()
        assert_same(run, history, TOLERANCE.get(name, 1e-12))
    assert min(np.ptp(run.rows(v), axis=0).max() for v in history) > 1e-6, "agents differ"
    return run


def test_the_oracles_know_every_method_and_technique_of_theirs():
    assert set(oracle.METHODS) == set(bench.SUN)
    assert set(oracle_aid.METHODS) <= set(METHODS)
    assert set(oracle.NEXT) == set(TECHNIQUES)


@bench.every_variant
def test_methods_follow_their_recursion(name, variant):
    tasks = bench.quadratics(task=bench.Elsewhere, noise=0.2)
    options = bench.lively(name, **variant)
    follow(name, options, tasks, oracle.Quadratic(5, bench.SEED), W)


@pytest.mark.parametrize("name", bench.SUN + bench.AID)
def test_methods_mix_with_the_lazy_matrix_as_with_any_other(name):
    """Also the network on which ED with W itself would diverge."""
    lazy = (np.eye(5) + bench.ring(5, 0.1)) / 2
    problem = oracle.Quadratic(5, bench.SEED)
    follow(name, bench.lively(name), bench.quadratics(noise=0.1), problem, lazy)


@settings(max_examples=12)
@given(techniques=st.tuples(*[st.sampled_from(sorted(TECHNIQUES))] * 3), data=st.data())
def test_any_technique_for_any_variable_follows_its_recursion(techniques, data):
    base = data.draw(st.sampled_from(sorted(bench.SUN)))
    own = dict(zip(oracle.VARIABLES, techniques, strict=True))
    options = bench.lively(base, **own, estimator="momentum")
    tasks = bench.quadratics(3, task=bench.Elsewhere, noise=0.2, d_x=2, d_y=3)
    problem = oracle.Quadratic(3, bench.SEED, 2, 3)
    follow(base, options, tasks, problem, bench.ring(3, 0.5), iterations=15)


@pytest.mark.parametrize("technique", ["gt", "semi-gt", "non-atc-gt", "extra", "ed", "suda-extra"])
def test_techniques_equal_their_eliminated_form(technique):
    """The form without trackers has P, Q, R in place of the technique's own bookkeeping."""
    options = {**CONSTANT, **dict.fromkeys(oracle.VARIABLES, technique)}
    tasks = bench.quadratics(task=bench.Elsewhere)
    start, problem = bench.start_of(tasks), oracle.Quadratic(5, bench.SEED)
    s = bench.setting("sun-dsbo-gt", options)
    history = oracle.eliminated(problem, W, start, ITERATIONS, s)
    run = Lockstep(bench.build("sun-dsbo-gt", **options), tasks, W).run(ITERATIONS)
    assert_same(run, history)


@pytest.mark.parametrize(
    ("name", "iterations", "of_agent_0", "of_agent_4"),
    [
        ("sun-dsbo-se", 10, 0.000543481176, 0.000559892257),
        ("sun-dsbo-dgd", 10, 0.000525758643, 0.000579128380),
        ("sun-dsbo-gt", 10, 0.000549997492, 0.000552494526),
        ("sun-dsbo-semi-gt", 10, 0.000549183327, 0.000553406779),
        ("sun-dsbo-non-atc-gt", 10, 0.000546775366, 0.000556016478),
        ("sun-dsbo-extra", 10, 0.000547770906, 0.000554778744),
        ("sun-dsbo-ed", 10, 0.000550296030, 0.000552161303),
        ("sun-dsbo-ed-gt", 100, 0.031471006010, None),
        ("sun-dsbo-extra-gt", 100, 0.031470950414, None),
    ],
)
def test_toy_has_the_values_of_independent_simulations(name, iterations, of_agent_0, of_agent_4):
    run = Lockstep(bench.build(name, **TOY), bench.toys(), TOY_W).run(iterations)
    x = run.rows("x")
    np.testing.assert_allclose(x[0], of_agent_0, rtol=0, atol=1e-11)
    if of_agent_4 is not None:
        np.testing.assert_allclose(x[4], of_agent_4, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", bench.SUN)
def test_toy_follows_its_recursion(name):
    """So that what the oracle says of 20,000 iterations can be said of the package."""
    run = Lockstep(bench.build(name, **TOY), bench.toys(), TOY_W).run(ITERATIONS)
    start = bench.start_of(bench.toys())
    history = oracle.trajectory(oracle.Toy(5), TOY_W, start, ITERATIONS, bench.setting(name, TOY))
    assert_same(run, history)


@pytest.mark.parametrize("name", bench.SUN)
def test_one_agent_alone_does_plain_descent(name):
    tasks = bench.quadratics(1, task=bench.Elsewhere, noise=0.2)
    problem = oracle.Quadratic(1, bench.SEED)
    options = bench.lively(name)
    s = bench.setting(name, options, bench.noise_of(tasks))
    history = oracle.centralised(problem, bench.start_of(tasks), ITERATIONS, s)
    run = Lockstep(bench.build(name, 1, **options), tasks, np.eye(1)).run(ITERATIONS)
    assert_same(run, history)
