"""What momentum and STORM must do whatever the technique."""

import bench
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lockstep import Lockstep

OPTIONS = {"step_x": 0.03, "step_y": 0.05, "step_theta": 0.04, "mu0": 2.0, "gamma": 0.5}
VARIABLES = ("x", "y", "theta")
W3 = bench.ring(3, 0.5)
share = st.floats(0, 1) | st.builds(
    lambda scale, power: {"scale": scale, "power": power}, st.floats(0, 1), st.floats(0, 2)
)


@pytest.mark.parametrize("estimator", ["momentum", "storm"])
@pytest.mark.parametrize("name", bench.SUN)
def test_with_rho_one_they_are_minibatch(name, estimator):
    tasks = bench.quadratics(noise=0.3)
    rho = {f"rho_{v}": 1.0 for v in VARIABLES}
    smooth = bench.build(name, **OPTIONS, p=0.2, estimator=estimator, **rho)
    plain = bench.build(name, **OPTIONS, p=0.2)
    runs = [Lockstep(algorithm, tasks, bench.uneven()).run(20) for algorithm in (smooth, plain)]
    for v in VARIABLES:
        np.testing.assert_array_equal(runs[0].rows(v), runs[1].rows(v))


@settings(max_examples=18)
@given(
    name=st.sampled_from(sorted(bench.SUN)),
    rho=st.fixed_dictionaries({f"rho_{v}": share for v in VARIABLES}),
    p=st.floats(0.05, 1),
)
def test_storm_with_exact_gradients_is_minibatch_for_any_rho(name, rho, p):
    """The old point must be taken with the old penalty, or the change of mu_k would pile up."""
    tasks = bench.quadratics(3, d_x=2, d_y=3)
    storm = bench.build(name, 3, **OPTIONS, p=p, estimator="storm", **rho)
    plain = bench.build(name, 3, **OPTIONS, p=p)
    runs = [Lockstep(algorithm, tasks, W3).run(15) for algorithm in (storm, plain)]
    for v in VARIABLES:
        np.testing.assert_allclose(runs[0].rows(v), runs[1].rows(v), rtol=0, atol=1e-12)


def errors(name, estimator, step=0.02, rho=0.1, burn_in=40, iterations=120):
    """Return the mean squared error of D_hat against the exact direction, by variable."""
    tasks = bench.quadratics(3, noise=1.0)
    options = {"step_x": step, "step_y": step, "step_theta": step, "gamma": 0.5, "p": 0.1}
    weights = {f"rho_{v}": rho for v in VARIABLES}
    run = Lockstep(bench.build(name, 3, **options, estimator=estimator, **weights), tasks, W3)
    s = bench.setting(name, options)
    problem = oracle.Quadratic(3, bench.SEED)
    total = dict.fromkeys(VARIABLES, 0.0)
    for k in range(iterations):
        at = {v: run.rows(v) for v in VARIABLES}
        run.iterate()
        exact = oracle.directions(problem, at, s.mu(k), s.gamma, oracle.no_noise(k))
        for v in VARIABLES:
            D_hat = np.stack([state.D_hat[v].numpy() for state in run.states])
            total[v] += np.mean((D_hat - exact[v]) ** 2) * (k >= burn_in) / (iterations - burn_in)
    return total


@pytest.mark.parametrize("name", ["sun-dsbo-se", "sun-dsbo-gt", "sun-dsbo-ed"])
def test_storm_has_a_smaller_variance_than_minibatch(name):
    """In theory rho/(2 - rho) = 0.053 of it, for noise that does not depend on the point."""
    noisy, storm = (errors(name, estimator) for estimator in ("minibatch", "storm"))
    for v in VARIABLES:
        assert storm[v] < 0.12 * noisy[v], v
