import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from sundsbo_mpi.tasks.toy import Toy

AGENTS = 5


@pytest.fixture
def tasks():
    made = [Toy(agent=agent, agents=AGENTS, seed=0) for agent in range(AGENTS)]
    for task in made:
        task.to(torch.device("cpu"), torch.float64)
    return made


def test_losses_are_those_printed(tasks):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(10), rng.standard_normal(20)
    for agent, task in enumerate(tasks):
        A, B = np.diag(np.full(10, 1 + 0.1 * agent)), np.diag(np.full(10, 1 + 0.05 * agent))
        upper = np.sum((A @ x - y[10:]) ** 2) / 2 + np.sum((B @ y[:10] - 1) ** 2) / 2
        lower = np.sum((B @ y[:10]) ** 2) / 2 - (A @ x) @ y[:10]
        at = torch.from_numpy(x), torch.from_numpy(y)
        assert float(task.upper(*at, None)) == pytest.approx(upper)
        assert float(task.lower(*at, None)) == pytest.approx(lower)
        assert task.report(*at) == pytest.approx({"upper_loss": upper, "lower_loss": lower})


def test_gradients_and_second_derivatives(tasks):
    at = [torch.linspace(-1, 1, d, dtype=torch.float64).requires_grad_() for d in (10, 20)]
    for loss in (tasks[3].upper, tasks[3].lower):
        assert torch.autograd.gradcheck(lambda x, y, loss=loss: loss(x, y, None), at)
        assert torch.autograd.gradgradcheck(lambda x, y, loss=loss: loss(x, y, None), at)


def test_bilevel_solution_by_hand(tasks):
    a, b = 1 + 0.1 * np.arange(AGENTS), 1 + 0.05 * np.arange(AGENTS)
    ratio = a.sum() / (b**2).sum()  # y1 = ratio x

    def hyperobjective(x):
        return np.mean((a * x - a.mean() * x) ** 2 + (b * ratio * x - 1) ** 2) / 2

    x = minimize(hyperobjective, 0.0, tol=1e-12).x[0]
    solution = tasks[0].reference(0.1, 10.0)["bilevel"]
    torch.testing.assert_close(
        solution["x"], torch.full((10,), x, dtype=torch.float64), atol=1e-6, rtol=0
    )
    y = torch.tensor([ratio * x, a.mean() * x]).repeat_interleave(10)
    torch.testing.assert_close(solution["y"], y, atol=1e-6, rtol=0)
    assert solution["x"][0] == pytest.approx(0.90145, abs=1e-5)


@pytest.mark.parametrize(("mu", "gamma"), [(0.1, 10.0), (0.02, 0.3)])
def test_the_saddle_function_is_stationary_at_the_penalised_solution(tasks, mu, gamma):
    solution = tasks[2].reference(mu, gamma)["penalised"]
    x, y = (solution[v].clone().requires_grad_() for v in "xy")

    def lower(x, y):
        return sum(task.lower(x, y, None) for task in tasks) / AGENTS

    # theta minimises G(x, theta) + |theta - y|^2/(2 gamma): coordinate by coordinate.
    b_squared = np.mean([(1 + 0.05 * agent) ** 2 for agent in range(AGENTS)])
    theta = y.detach().clone()
    theta[:10] = (1.2 * x.detach() + y.detach()[:10] / gamma) / (b_squared + 1 / gamma)
    upper = sum(task.upper(x, y, None) for task in tasks) / AGENTS
    proximal = (theta - y).square().sum() / (2 * gamma)
    saddle = mu * upper + lower(x, y) - lower(x, theta) - proximal
    for gradient in torch.autograd.grad(saddle, (x, y)):
        assert gradient.abs().max() < 1e-12


def test_penalised_solutions_tend_to_the_bilevel_one(tasks):
    distances = []
    for mu in (1e-1, 1e-2, 1e-3):
        reference = tasks[0].reference(mu, 1.0)
        distances.append(float((reference["penalised"]["x"] - reference["bilevel"]["x"]).norm()))
    assert distances[1] < 0.2 * distances[0]
    assert distances[2] < 0.2 * distances[1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_everything_is_of_the_chosen_dtype(dtype):
    task = Toy(agent=1, agents=3, seed=0)
    task.to(torch.device("cpu"), dtype)
    x, y = task.start()
    assert x.dtype == y.dtype == task.upper(x, y, task.sample(0)).dtype == dtype
    assert (x.shape, y.shape) == ((task.sizes["x"],), (task.sizes["y"],))
    assert {v.dtype for one in task.reference(0.1, 1.0).values() for v in one.values()} == {dtype}
