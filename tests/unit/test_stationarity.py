"""The stationarity measure against linear algebra on the quadratic, whose envelope is known."""

import bench
import numpy as np
import oracle
import pytest
import torch
from together import together

from sundsbo_mpi.measuring.stationarity import stationarity
from sundsbo_mpi.tasks.base import Penalty

AGENTS = 3
PROBLEM = oracle.Quadratic(AGENTS, bench.SEED)
PENALTY = Penalty(mu=0.7, gamma=0.4)


def measure(x, y, dtype=torch.float64, **options):
    tasks = bench.quadratics(AGENTS, dtype=dtype, **options)
    w_bar = {"x": torch.tensor(x, dtype=dtype), "y": torch.tensor(y, dtype=dtype)}
    w_bar["theta"] = torch.full_like(w_bar["y"], torch.nan)  # it is of no use to the measure

    def work(tally):
        return stationarity(tally, tasks[tally.agent], w_bar, PENALTY)

    first, *others = together(AGENTS, work)
    assert others == [first] * 2
    return first


def closed_form(x, y):
    """‖∇Ψ‖² with θ* = (A + I/γ)^{-1} (B x + c + y/γ) for the averages A, B, c."""
    A, B, c = (getattr(PROBLEM, name).mean(axis=0) for name in "ABc")
    mu, gamma = PENALTY
    theta = np.linalg.solve(A + np.eye(len(A)) / gamma, B @ x + c + y / gamma)
    X, Y = np.tile(x, (AGENTS, 1)), np.tile(y, (AGENTS, 1))
    along_x = mu * PROBLEM.f_x(X, Y).mean(axis=0) - B.T @ (y - theta)
    along_y = mu * PROBLEM.f_y(X, Y).mean(axis=0) + A @ y - B @ x - c - (y - theta) / gamma
    return along_x @ along_x + along_y @ along_y


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_closed_form_anywhere(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(5), rng.standard_normal(8)
    found = measure(x, y)
    assert found.measure == pytest.approx(closed_form(x, y), rel=1e-7)
    assert found.residual < 1e-7


def test_it_is_the_gradient_of_the_penalised_function():
    """Central differences of μF + G - V_γ, with V_γ minimised by linear algebra."""
    A, B, c = (getattr(PROBLEM, name).mean(axis=0) for name in "ABc")
    mu, gamma = PENALTY

    def lower(x, y):
        return y @ A @ y / 2 - y @ (B @ x + c)

    def psi(v):
        x, y = v[:5], v[5:]
        theta = np.linalg.solve(A + np.eye(8) / gamma, B @ x + c + y / gamma)
        envelope = lower(x, theta) + (theta - y) @ (theta - y) / (2 * gamma)
        upper = sum(
            (x - s) @ R @ (x - s) / 2 + (y - t) @ Q @ (y - t) / 2
            for R, Q, s, t in zip(PROBLEM.R, PROBLEM.Q, PROBLEM.s, PROBLEM.t, strict=True)
        )
        return mu * upper / AGENTS + lower(x, y) - envelope

    v = np.random.default_rng(9).standard_normal(13)
    gradient = [(psi(v + e) - psi(v - e)) / 2e-5 for e in 1e-5 * np.eye(13)]
    assert measure(v[:5], v[5:]).measure == pytest.approx(np.dot(gradient, gradient), rel=1e-6)


def test_it_vanishes_at_the_penalised_solution_and_only_there():
    point = bench.quadratics(AGENTS)[0].reference(*PENALTY)["penalised"]
    x, y = point["x"].numpy(), point["y"].numpy()
    assert measure(x, y).measure < 1e-14
    assert measure(x + 0.1, y).measure > 1e-3


def test_it_uses_all_data_and_no_noise():
    x, y = np.ones(5), np.ones(8)
    assert measure(x, y, noise=2.0).measure == pytest.approx(closed_form(x, y), rel=1e-7)


def test_the_smoothness_is_the_largest_eigenvalue_of_the_mean_hessian():
    largest = np.linalg.eigvalsh(PROBLEM.A.mean(axis=0)).max()
    found = measure(np.ones(5), np.ones(8)).lipschitz
    assert found == pytest.approx(largest, rel=0.02)
    assert found <= largest * (1 + 1e-12)


def test_single_precision_is_good_to_a_few_digits():
    """The line search compares values: the residual is limited to the root of their last digit."""
    x, y = np.ones(5), np.ones(8)
    found = measure(x, y, dtype=torch.float32)
    assert found.measure == pytest.approx(closed_form(x, y), rel=1e-3)
    assert found.residual < 1e-2


class Affine(bench.Quadratic):
    """A lower level that is affine in y on the first agent."""

    def lower(self, x, y, batch):
        return y.sum() if self._agent == 0 else super().lower(x, y, batch)


def test_an_agent_may_have_an_affine_lower_level():
    tasks = bench.quadratics(AGENTS, task=Affine)
    w_bar = {"x": torch.zeros(5), "y": torch.zeros(8), "theta": torch.zeros(8)}
    w_bar = {v: s.double() for v, s in w_bar.items()}
    found = together(AGENTS, lambda tally: stationarity(tally, tasks[tally.agent], w_bar, PENALTY))
    A = PROBLEM.A.copy()
    A[0] = 0
    expected = np.abs(np.linalg.eigvalsh(A.mean(axis=0))).max()
    assert found[0].lipschitz == pytest.approx(expected, rel=1e-2)
