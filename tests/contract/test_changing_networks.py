"""Networks that change from one iteration to the next, and several rounds of gossip in one."""

import functools
import itertools

import bench
import numpy as np
import oracle
import pytest
from lockstep import Lockstep

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.algorithms.safety import changing_remark, is_safe
from sundsbo_mpi.composition.multi_step import MultiStep
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import SEQUENCES, Cycle

ITERATIONS = 15
NETWORKS = {
    "one-peer": SEQUENCES["one-peer"](5),
    "random": SEQUENCES["random"](5, neighbours=2, neighbours_max=4),
    "random every 3": SEQUENCES["random"](5, neighbours=2, every=3),
    "random lazy": SEQUENCES["random"](5, neighbours=2, neighbours_max=4, lazy=True),
}
ANY = {f"sun-dsbo-{technique}" for technique in ("se", "dgd", "gt", "semi-gt", "non-atc-gt")}
ANY |= {"sparkle-gt", "d-soba", "d-soba-fo", "sldbo"}
SYMMETRIC = {"sun-dsbo-extra", "sun-dsbo-extra-gt"}
"""What mixes with any matrices, and with any symmetric ones."""
ALLOWED = [
    pytest.param(*case.values, network, id=f"{case.id}-{network}")
    for case, network in itertools.product(bench.VARIANTS, NETWORKS)
    if case.values[1].get("estimator", "minibatch") == "minibatch"
    and is_safe(bench.build(case.values[0]), NETWORKS[network].lambda_min)
]
W = bench.uneven()


@functools.cache
def matrix_of(network, k):
    """Return W_k, drawn once, as drawing takes most of the time."""
    return NETWORKS[network].at(k).toarray()


SMALL = {"step_x": 0.01, "step_y": 0.01, "step_theta": 0.01, "gamma": 1.0}


def line(*order):
    """Metropolis-Hastings weights, 1/3 on every edge, of a line in this order."""
    W = np.zeros((len(order),) * 2)
    for i, j in itertools.pairwise(order):
        W[i, j] = W[j, i] = 1 / 3
    return W + np.diag(1 - W.sum(axis=1))


def follow(algorithm, name, options, weights, oracle_weights, tolerance=1e-11):
    tasks = bench.quadratics(task=bench.Elsewhere, noise=0.2)
    problem = oracle.Quadratic(5, bench.SEED)
    history = bench.history_of(name, options, tasks, problem, oracle_weights, ITERATIONS)
    run = Lockstep(algorithm, tasks, weights)
    for _ in range(ITERATIONS):
        run.iterate()
        for v, rows in history.items():
            np.testing.assert_allclose(run.rows(v), rows[run.k], rtol=0, atol=tolerance, err_msg=v)
    return run


def test_se_dgd_and_gt_mix_with_any_and_the_others_with_symmetric_matrices_of_their_bound():
    on = {
        network: {case.values[0] for case in ALLOWED if case.values[2] == network}
        for network in NETWORKS
    }
    everything = set(bench.SUN + bench.AID)
    assert on["one-peer"] == ANY
    assert on["random"] == ANY | SYMMETRIC, "an even graph of 4 neighbours may have -3/5"
    assert on["random every 3"] == everything, "a ring of five has -0.21"
    assert on["random lazy"] == everything


@pytest.mark.parametrize(("name", "variant", "network"), ALLOWED)
def test_all_rounds_of_an_iteration_use_its_matrix(name, variant, network):
    def at(k):
        return matrix_of(network, k).copy()

    options = bench.lively(name, **variant)
    tolerance = 1e-8 if name == "d-soba-fo" else 1e-11
    run = follow(bench.build(name, **options), name, options, at, at, tolerance)
    scales = [scale for defect in run.defects() for _, scale in defect.values()]
    assert max(float(scale.abs().max()) for scale in scales) > 1e-3
    for v in bench.techniques(name):
        conserved = sum(defect[v][0] for defect in run.defects())
        assert float(conserved.abs().max()) < 1e-12


def test_exact_diffusion_diverges_where_each_matrix_alone_is_safe():
    """Why a run is told of it: a line of four in one order and in another."""
    graphs = (line(0, 2, 3, 1), line(2, 1, 0, 3))
    assert Cycle(graphs, "lines").lambda_min > -1 / 3
    ed = bench.build("sun-dsbo-ed")
    assert is_safe(ed, Cycle(graphs, "lines").lambda_min)
    assert "may diverge" in " ".join(changing_remark(ed, steady=False))
    n = len(graphs[0])
    rows = {}
    for name, network in (("one", lambda _k: graphs[0]), ("both", lambda k: graphs[k % 2])):
        run = Lockstep(bench.build("sun-dsbo-ed", n, 200, **SMALL), bench.quadratics(n), network)
        rows[name] = run.run(200).rows("y")
    assert np.ptp(rows["one"], axis=0).max() < 0.1
    assert np.ptp(rows["both"], axis=0).max() > 1e3


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("name", bench.SUN)
def test_several_rounds_mix_with_the_power_of_the_matrix(name, steps):
    options = bench.lively(name)
    once = bench.build(name, **options)
    algorithm = MultiStep(once, steps)
    power = np.linalg.matrix_power(W, steps)
    run = follow(algorithm, name, options, W, power)
    assert algorithm.rounds == steps * once.rounds
    assert algorithm.vectors == steps * once.vectors
    assert run.rounds == ITERATIONS * algorithm.rounds
    assert run.vectors == ITERATIONS * algorithm.vectors


@pytest.mark.parametrize("name", METHODS)
def test_several_rounds_are_no_other_method(name):
    once = by_default(METHODS[name])
    thrice = MultiStep(once, 3)
    assert thrice.oracles == once.oracles
    assert thrice.penalty(4) == once.penalty(4)
    assert (thrice.rounds, thrice.vectors) == (3 * once.rounds, 3 * once.vectors)


def test_a_power_is_judged_by_the_eigenvalues_that_it_has():
    ed, gt = bench.build("sun-dsbo-ed"), bench.build("sun-dsbo-gt")
    for lambda_min in (-0.99, -0.75, -0.69, -0.6, -0.34, -0.3, 0.0, 0.4):
        for steps in (1, 2, 3, 4):
            safe = is_safe(MultiStep(ed, steps), lambda_min)
            assert safe == (min(lambda_min**steps, 1.0) > -1 / 3), (lambda_min, steps)
            assert is_safe(MultiStep(gt, steps), lambda_min)
    assert not is_safe(MultiStep(ed, 2), None)
    assert is_safe(MultiStep(gt, 2), None)


@pytest.mark.parametrize("steps", [0, -1])
def test_no_rounds_at_all_are_refused(steps):
    with pytest.raises(UsageError, match=r"gossip_steps is .*: expected an integer of at least 1"):
        MultiStep(bench.build("sun-dsbo-se"), steps)
