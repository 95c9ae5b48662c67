import numpy as np
import pytest
import torch
from scipy.optimize import minimize, root

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.quadratic import Quadratic

AGENTS = 4
CPU = torch.device("cpu")


def build(**options):
    tasks = [Quadratic(agent=a, agents=AGENTS, seed=2, **options) for a in range(AGENTS)]
    for task in tasks:
        task.to(CPU, torch.float64)
    return tasks


def averaged(tasks, name):
    return lambda x, y: sum(getattr(t, name)(x, y, t.everything()) for t in tasks) / AGENTS


def gradients(loss, x, y):
    at = [torch.as_tensor(v).clone().requires_grad_() for v in (x, y)]
    return [g.numpy() for g in torch.autograd.grad(loss(*at), at, materialize_grads=True)]


@pytest.mark.parametrize(("mu", "gamma"), [(1.0, 0.1), (0.05, 2.0)])
def test_the_penalised_solution_is_what_a_root_finder_finds(mu, gamma):
    tasks = build(d_x=3, d_y=4)
    F, G = averaged(tasks, "upper"), averaged(tasks, "lower")

    def stationarity(w):
        x, y, theta = np.split(w, [3, 7])
        (f_x, f_y), (g_x, g_y), (h_x, h_y) = (
            gradients(loss, x, v) for loss, v in ((F, y), (G, y), (G, theta))
        )
        pull = (y - theta) / gamma
        return np.concatenate([mu * f_x + g_x - h_x, mu * f_y + g_y - pull, h_y - pull])

    found = root(stationarity, np.ones(11), tol=1e-13).x
    solution = tasks[1].reference(mu, gamma)["penalised"]
    np.testing.assert_allclose(solution["x"], found[:3], atol=1e-8)
    np.testing.assert_allclose(solution["y"], found[3:7], atol=1e-8)


def test_the_bilevel_solution_is_what_a_minimiser_finds():
    tasks = build(d_x=3, d_y=4)
    F, G = averaged(tasks, "upper"), averaged(tasks, "lower")

    def response(x):
        """Newton's method, exact in one step from anywhere."""
        x, y = torch.as_tensor(x), torch.zeros(4, dtype=torch.float64)
        hessian = torch.autograd.functional.hessian(lambda v: G(x, v), y)
        return y - torch.linalg.solve(hessian, torch.as_tensor(gradients(G, x, y)[1]))

    def hyperobjective(x):
        return float(F(torch.as_tensor(x), response(x)))

    x = minimize(hyperobjective, np.zeros(3), tol=1e-10).x
    solution = tasks[0].reference(0.1, 1.0)["bilevel"]
    np.testing.assert_allclose(solution["x"], x, atol=1e-5)
    np.testing.assert_allclose(solution["y"], response(x), atol=1e-5)
    np.testing.assert_allclose(gradients(G, solution["x"], solution["y"])[1], 0, atol=1e-12)


def test_penalised_solutions_tend_to_the_bilevel_one_in_proportion_to_mu():
    task = build()[0]
    distances = []
    for mu in (1e-2, 1e-3, 1e-4):
        reference = task.reference(mu, 0.1)
        distances.append(float((reference["penalised"]["x"] - reference["bilevel"]["x"]).norm()))
    np.testing.assert_allclose(np.divide(distances[:-1], distances[1:]), 10, rtol=0.1)


def test_losses_are_strongly_convex_where_the_docstring_says():
    for task in build(heterogeneity=3.0):
        x, y = task.start()
        exact = task.everything()
        hessian = torch.autograd.functional.hessian
        upper = hessian(lambda v, t=task, e=exact: t.upper(v[:5], v[5:], e), torch.cat([x, y]))
        lower = hessian(lambda v, t=task, e=exact, x=x: t.lower(x, v, e), y)
        assert torch.linalg.eigvalsh(upper).min() >= 1 - 1e-12
        assert torch.linalg.eigvalsh(lower).min() >= 1 - 1e-12


def test_the_upper_loss_is_zero_at_its_minimiser():
    task = build()[1]
    exact = task.everything()
    v = torch.zeros(13, dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda v: task.upper(v[:5], v[5:], exact), v)
    best = v - torch.linalg.solve(
        hessian,
        torch.from_numpy(
            np.concatenate(gradients(lambda x, y: task.upper(x, y, exact), v[:5], v[5:]))
        ),
    )
    assert float(task.upper(best[:5], best[5:], exact)) == pytest.approx(0, abs=1e-12)


def test_gradients_and_second_derivatives():
    task = build(noise=0.3)[2]
    batch = task.sample(4)
    at = [torch.linspace(-1, 1, d, dtype=torch.float64).requires_grad_() for d in (5, 8)]
    for loss in (task.upper, task.lower):
        assert torch.autograd.gradcheck(lambda x, y, loss=loss: loss(x, y, batch), at)
        assert torch.autograd.gradgradcheck(lambda x, y, loss=loss: loss(x, y, batch), at)


def test_without_heterogeneity_all_agents_are_equal():
    x, y = torch.ones(5, dtype=torch.float64), torch.ones(8, dtype=torch.float64)

    def spread(h):
        values = [float(t.lower(x, y, t.everything())) for t in build(heterogeneity=h)]
        return max(values) - min(values)

    assert spread(0.0) == 0
    assert 0 < spread(0.1) < spread(2.0)


def test_noise_is_a_pure_function_of_agent_iteration_and_draw():
    first, second = build(noise=0.5)[:2]
    one = first.sample(3, 1)
    for index in range(5):
        first.sample(index)
    again = build(noise=0.5)[0].sample(3, 1)
    assert torch.equal(one.upper, again.upper)
    assert torch.equal(one.lower, again.lower)
    others = [first.sample(3), first.sample(4, 1), second.sample(3, 1)]
    assert not any(torch.equal(one.upper, other.upper) for other in others)
    assert not torch.equal(one.upper, one.lower)


def test_noise_is_added_to_the_gradients_with_the_asked_deviation():
    task = build(noise=0.5)[0]
    x, y = torch.ones(5, dtype=torch.float64), torch.ones(8, dtype=torch.float64)
    draws = []
    for name in ("upper", "lower"):
        loss = getattr(task, name)
        exact = np.concatenate(gradients(lambda x, y, f=loss: f(x, y, task.everything()), x, y))
        for k in range(200):
            batch = task.sample(k)
            noisy = np.concatenate(gradients(lambda x, y, f=loss, b=batch: f(x, y, b), x, y))
            draws.append(noisy - exact)
            np.testing.assert_allclose(draws[-1], getattr(batch, name), atol=1e-12)
    assert np.std(draws) == pytest.approx(0.5, rel=0.05)
    assert np.abs(np.mean(draws)) < 0.03


@pytest.mark.parametrize(("mu", "gamma"), [(1e308, np.inf), (1.0, 5e-324)])
def test_a_penalty_beyond_all_numbers_is_refused(mu, gamma):
    with pytest.raises(UsageError, match=r"with mu = .* and gamma = .* has no solution"):
        build()[0].reference(mu, gamma)


@pytest.mark.parametrize(
    "options",
    [
        {"d_x": 0},
        {"d_x": 1001},
        {"d_y": 2.5},
        {"d_y": 10**20},
        {"noise": -1.0},
        {"heterogeneity": "much"},
        {"heterogeneity": 1e308},
    ],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UsageError, match=f"task.{next(iter(options))} is"):
        build(**options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_everything_is_of_the_chosen_dtype(dtype):
    task = Quadratic(agent=0, agents=2, seed=0, noise=0.1)
    task.to(CPU, dtype)
    x, y = task.start()
    assert x.dtype == y.dtype == task.lower(x, y, task.sample(0)).dtype == dtype
    assert {v.dtype for one in task.reference(0.1, 1.0).values() for v in one.values()} == {dtype}
