"""The direction of SUN-DSBO against eqs. 6a-6c written out, and against finite differences."""

import bench
import oracle
import pytest
import torch

from sundsbo_mpi.composition.directions import sun

MU, GAMMA = 0.7, 0.3


class Curved:
    """Neither loss is quadratic, and the batch shifts both."""

    def upper(self, x, y, batch):
        return torch.sin(x).sum() * torch.cos(y * batch).sum() + (y**4).sum()

    def lower(self, x, y, batch):
        return torch.logsumexp(torch.outer(x, y).flatten() + batch, 0) + (x**2).sum() * y.sum()


class Flat:
    """An upper level without x and a lower level without x: as legal as any other."""

    def upper(self, x, y, batch):
        return (y**2).sum()

    def lower(self, x, y, batch):
        return ((y - 1) ** 2).sum()


def point(d_x=3, d_y=4):
    rng = torch.Generator().manual_seed(5)
    sizes = {"x": d_x, "y": d_y, "theta": d_y}
    return {v: torch.randn(d, generator=rng, dtype=torch.float64) for v, d in sizes.items()}


def partials(loss, x, y, batch):
    at = x.clone().requires_grad_(), y.clone().requires_grad_()
    return torch.autograd.grad(loss(*at, batch), at)


def test_it_is_eq_4_written_out():
    task, w, xi = Curved(), point(), torch.tensor(0.4, dtype=torch.float64)
    x, y, theta = w["x"], w["y"], w["theta"]
    f_x, f_y = partials(task.upper, x, y, xi)
    g_x, g_y = partials(task.lower, x, y, xi)
    h_x, h_y = partials(task.lower, x, theta, xi)
    D = sun(task, w, xi, mu=MU, gamma=GAMMA)
    torch.testing.assert_close(D["x"], MU * f_x + g_x - h_x)
    torch.testing.assert_close(D["y"], MU * f_y + g_y - (y - theta) / GAMMA)
    torch.testing.assert_close(D["theta"], h_y + (theta - y) / GAMMA)


def saddle(task, w, xi):
    x, y, theta = w["x"], w["y"], w["theta"]
    proximal = ((theta - y) ** 2).sum() / (2 * GAMMA)
    return MU * task.upper(x, y, xi) + task.lower(x, y, xi) - task.lower(x, theta, xi) - proximal


@pytest.mark.parametrize(("variable", "sign"), [("x", 1), ("y", 1), ("theta", -1)])
def test_it_is_the_finite_difference_of_the_saddle_function(variable, sign):
    task, w, xi = Curved(), point(), torch.tensor(0.4, dtype=torch.float64)
    D = sun(task, w, xi, mu=MU, gamma=GAMMA)[variable]
    for i in range(len(D)):
        shift = torch.zeros_like(D)
        shift[i] = 1e-6
        ends = ({**w, variable: w[variable] + s} for s in (shift, -shift))
        ahead, behind = (saddle(task, end, xi) for end in ends)
        assert float(D[i]) == pytest.approx(sign * float(ahead - behind) / 2e-6, abs=1e-7)


def test_it_is_the_oracle_on_both_closed_form_tasks():
    for tasks, problem in (
        (bench.quadratics(4, noise=0.3), oracle.Quadratic(4, bench.SEED)),
        (bench.toys(4), oracle.Toy(4)),
    ):
        w = [point(problem.d_x, problem.d_y)] * 4
        S = {v: torch.stack([each[v] for each in w]).numpy() for v in w[0]}
        noise = oracle.no_noise(6)
        if isinstance(problem, oracle.Quadratic):
            noise = bench.noise_of(tasks)(6)
        exact = oracle.directions(problem, S, MU, GAMMA, noise)
        for i, task in enumerate(tasks):
            D = sun(task, w[i], task.sample(6), mu=MU, gamma=GAMMA)
            for v, rows in exact.items():
                torch.testing.assert_close(D[v], torch.from_numpy(rows[i]), rtol=0, atol=1e-12)


def test_a_loss_may_not_depend_on_a_variable():
    D = sun(Flat(), point(), None, mu=MU, gamma=GAMMA)
    assert torch.equal(D["x"], torch.zeros(3, dtype=torch.float64))
    assert D["theta"].norm() > 0


class Sum:
    """Its gradient in y is one number, which autograd hands out as a view with many entries."""

    def upper(self, x, y, batch):
        return x.sum()

    def lower(self, x, y, batch):
        return y.sum()


def test_a_loss_may_be_a_mere_sum():
    w = point()
    D = sun(Sum(), w, None, mu=MU, gamma=GAMMA)
    torch.testing.assert_close(D["x"], torch.full_like(w["x"], MU))
    torch.testing.assert_close(D["y"], 1 - (w["y"] - w["theta"]) / GAMMA)
    torch.testing.assert_close(D["theta"], 1 + (w["theta"] - w["y"]) / GAMMA)


def test_the_point_is_left_alone_and_the_result_remembers_no_graph():
    w = point()
    before = {v: s.clone() for v, s in w.items()}
    D = sun(Curved(), w, torch.tensor(0.4), mu=MU, gamma=GAMMA)
    assert all(torch.equal(w[v], before[v]) and not w[v].requires_grad for v in w)
    assert not any(s.requires_grad for s in D.values())
