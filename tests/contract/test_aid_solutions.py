"""Where the AID methods settle: at the closed-form bilevel solution, or in proportion to a step.

Long runs are the oracle's, which the package follows (test_trajectories); some are also its own.
"""

import itertools

import bench
import numpy as np
import oracle
import oracle_aid
import pytest
from lockstep import Lockstep

AGENTS = 5
W = bench.ring(AGENTS, 0.5)
PROBLEM = oracle.Quadratic(AGENTS, bench.SEED)
ITERATIONS = 450
"""SPARKLE-GT in one pass, the slowest, reaches 1e-8 in 380; SLDBO, the fastest, in 210."""
EXACT = [
    pytest.param(name, variant, id="-".join([name, *variant.values()]))
    for name, variant in (case.values for case in bench.VARIANTS)
    if name in bench.AID and not name.startswith("d-soba")
]


def steps(size):
    return {f"step_{v}": size for v in ("x", "y", "z")}


def settled(name, iterations, **options):
    """Return rows of x, y and z after a run of the package."""
    algorithm = bench.build(name, AGENTS, iterations, **options)
    run = Lockstep(algorithm, bench.quadratics(AGENTS), W).run(iterations)
    return {v: run.rows(v) for v in ("x", "y", "z")}


def foreseen(name, iterations, **options):
    """Return the rows of the oracle."""
    start = bench.start_of(bench.quadratics(AGENTS))
    setting = bench.aid_setting(name, options)
    history = oracle_aid.trajectory(PROBLEM, W, start, iterations, setting)
    return {v: rows[-1] for v, rows in history.items()}


def distance(rows, solution):
    return max(np.abs(rows[v] - np.asarray(known)).max() for v, known in solution.items())


def bilevel():
    """Return the closed form of the task for x and y."""
    return bench.quadratics(AGENTS)[0].reference(None, None)["bilevel"]


def test_the_oracle_and_the_task_agree_on_the_bilevel_solution():
    assert distance(oracle_aid.bilevel_point(PROBLEM), bilevel()) < 1e-12


@pytest.mark.parametrize(("name", "variant"), EXACT)
def test_every_mix_and_order_is_exact_on_all_agents(name, variant):
    rows = foreseen(name, ITERATIONS, **steps(0.1), **variant)
    assert distance(rows, oracle_aid.bilevel_point(PROBLEM)) < 1e-8


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("sparkle-gt", {}),
        ("sparkle-extra", {}),
        ("sparkle-ed", {}),
        ("sparkle-ed-gt", {"order": "one-pass"}),
        ("sldbo", {}),
    ],
)
def test_the_package_gets_there_too(name, variant):
    rows = settled(name, ITERATIONS, **steps(0.1), **variant)
    assert distance(rows, bilevel()) < 1e-8
    assert distance(rows, oracle_aid.bilevel_point(PROBLEM)) < 1e-8


def bias(rows):
    return distance({v: s.mean(axis=0) for v, s in rows.items()}, bilevel())


def test_d_soba_is_biased_in_proportion_to_the_step():
    sizes = {0.01: 1500, 0.005: 3000, 0.0025: 6000}
    found = [bias(foreseen("d-soba", k, **steps(size))) for size, k in sizes.items()]
    assert 1e-3 < found[-1] < 1e-2  # 0.0119, 0.0061 and 0.0031
    assert all(1.85 < coarse / fine < 2.05 for coarse, fine in itertools.pairwise(found)), found


@pytest.mark.parametrize("name", ["d-soba", "d-soba-fo"])
def test_the_package_has_the_bias_of_the_oracle(name):
    options = steps(0.08)
    rows, known = settled(name, 150, **options), foreseen(name, 150, **options)
    assert distance(rows, known) < 1e-8
    assert bias(rows) > 0.05


def test_what_is_projected_stays_in_the_ball_on_every_agent():
    tasks = bench.quadratics(AGENTS, noise=0.2)
    run = Lockstep(bench.build("sldbo", AGENTS, **steps(0.1), projection_radius=0.2), tasks, W)
    sizes = []
    for _ in range(40):
        run.iterate()
        sizes.append(np.linalg.norm(run.rows("z"), axis=1))
    assert np.max(sizes) <= 0.2 * (1 + 1e-15)
    assert np.min(sizes[-1]) == pytest.approx(0.2, rel=1e-12), "the ball is in the way here"
