"""What does not depend on who is who, and what the network cannot change."""

import bench
import numpy as np
import oracle
import pytest
import torch
from lockstep import Lockstep

ITERATIONS = 20
"""A leak of 1e-9 a round from agent to agent was seen in so many, in all ten cases tried."""
OPTIONS = {"step_x": 0.03, "step_y": 0.05, "step_theta": 0.04, "p": 0.2, "gamma": 0.5}
PURE = [name for name, own in oracle.METHODS.items() if len(set(own)) == 1]


@bench.every_method
def test_identical_agents_do_what_one_would_do_alone(name, variant):
    algorithm = bench.build(name, **bench.lively(name, **variant))
    equal = {"task": bench.Merged, "heterogeneity": 0.0}
    many = Lockstep(algorithm, bench.quadratics(5, **equal), bench.uneven()).run(ITERATIONS)
    alone = Lockstep(algorithm, bench.quadratics(1, **equal), np.eye(1)).run(ITERATIONS)
    tolerance = 1e-8 if name == "d-soba-fo" else 1e-12  # rounding is divided by a difference
    for v in many.points[0]:
        expected = np.tile(alone.rows(v), (5, 1))
        np.testing.assert_allclose(many.rows(v), expected, rtol=0, atol=tolerance)


@bench.every_method
def test_relabelling_the_agents_relabels_the_result(name, variant):
    order = np.array([3, 0, 4, 2, 1])
    W, tasks = bench.uneven(), bench.quadratics(task=bench.Elsewhere, noise=0.1)
    algorithm = bench.build(name, **bench.lively(name, **variant))
    plain = Lockstep(algorithm, tasks, W).run(ITERATIONS)
    others, permuted = [tasks[i] for i in order], W[np.ix_(order, order)]
    renamed = Lockstep(algorithm, others, permuted).run(ITERATIONS)
    tolerance = 1e-8 if name == "d-soba-fo" else 1e-12
    for v in plain.points[0]:
        np.testing.assert_allclose(renamed.rows(v), plain.rows(v)[order], rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", bench.SUN + bench.AID)
def test_a_complete_exchange_keeps_adapt_then_combine_in_exact_consensus(name):
    """Methods that add a direction after the average differ by their own direction, by design."""
    everyone = np.full((5, 5), 1 / 5)
    algorithm = bench.build(name, **bench.lively(name))
    run = Lockstep(algorithm, bench.quadratics(), everyone).run(ITERATIONS)
    for v, technique in bench.techniques(name).items():
        spread = np.ptp(run.rows(v), axis=0).max()
        if technique in ("se", "gt", "semi-gt", "ed"):
            assert spread < 1e-13, (v, technique)
        else:
            assert spread > 1e-4, (v, technique)


@pytest.mark.parametrize("technique", [name.removeprefix("sun-dsbo-") for name in PURE])
@pytest.mark.parametrize("base", ["sun-dsbo-se", "sun-dsbo-extra-gt"])
def test_a_mix_of_one_technique_is_that_technique(base, technique):
    tasks = bench.quadratics(noise=0.1)
    mixed = bench.build(base, **OPTIONS, **dict.fromkeys(oracle.VARIABLES, technique))
    pure = bench.build(f"sun-dsbo-{technique}", **OPTIONS)
    runs = [Lockstep(algorithm, tasks, bench.uneven()).run(20) for algorithm in (mixed, pure)]
    for v in oracle.VARIABLES:
        np.testing.assert_array_equal(runs[0].rows(v), runs[1].rows(v))


@bench.every_method
def test_the_dtype_of_the_task_is_kept(name, variant):
    algorithm = bench.build(name, **bench.lively(name, **variant))
    tasks = bench.quadratics(task=bench.Merged, dtype=torch.float32)
    run = Lockstep(algorithm, tasks, bench.uneven()).run(3)
    assert {s.dtype for w in run.points for s in w.values()} == {torch.float32}
    assert {buffer.dtype for buffer in run.buffers.values()} == {torch.float32}
