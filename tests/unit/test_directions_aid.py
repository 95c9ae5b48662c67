"""The directions of AID: against the formulas, against finite differences, also on a network."""

import bench
import numpy as np
import oracle
import oracle_aid
import pytest
import torch
from test_directions import Curved, Flat

from sundsbo_mpi.composition.directions import (
    hypergradient,
    linear_residual,
    lower_gradient,
    soba,
    soba_first_order,
)
from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning


def point(d_x=3, d_y=4):
    rng = torch.Generator().manual_seed(6)
    sizes = {"x": d_x, "y": d_y, "z": d_y}
    return {v: torch.randn(d, generator=rng, dtype=torch.float64) for v, d in sizes.items()}


XI = torch.tensor(0.4, dtype=torch.float64)


def with_hessians(task, w, xi):
    """Return u, v and p from full Hessians, which torch computes another way."""
    x, y, z = (w[v] for v in ("x", "y", "z"))
    f_x, f_y = torch.autograd.functional.jacobian(lambda *at: task.upper(*at, xi), (x, y))
    _, g_y = torch.autograd.functional.jacobian(lambda *at: task.lower(*at, xi), (x, y))
    (_, g_xy), (_, g_yy) = torch.autograd.functional.hessian(
        lambda *at: task.lower(*at, xi), (x, y)
    )
    return {"x": f_x - g_xy @ z, "y": g_y, "z": g_yy @ z - f_y}


def assert_close(D, known, tolerance):
    assert set(D) <= set(known)
    for v, s in D.items():
        torch.testing.assert_close(s, known[v], rtol=0, atol=tolerance)


def test_all_at_one_point_are_the_formulas():
    assert_close(soba(Curved(), point(), XI), with_hessians(Curved(), point(), XI), 1e-12)


@pytest.mark.parametrize(
    ("pieces", "variable"), [(lower_gradient, "y"), (linear_residual, "z"), (hypergradient, "x")]
)
def test_each_alone_is_its_part_of_all(pieces, variable):
    D = pieces(Curved(), point(), XI)
    assert set(D) == {variable}
    assert_close(D, soba(Curved(), point(), XI), 1e-14)


def test_they_are_the_oracle_on_the_quadratic():
    tasks, problem = bench.quadratics(4, noise=0.3), oracle.Quadratic(4, bench.SEED)
    S = {v: np.tile(s.numpy(), (4, 1)) for v, s in point(problem.d_x, problem.d_y).items()}
    noise = bench.noise_of(tasks)(6)
    for i, task in enumerate(tasks):
        w = {v: torch.from_numpy(rows[i]) for v, rows in S.items()}
        known = {
            v: torch.from_numpy(piece(problem, S, noise)[i])
            for v, piece in oracle_aid.PIECES.items()
        }
        assert_close(soba(task, w, task.sample(6)), known, 1e-12)
        assert_close(soba_first_order(task, w, task.sample(6)), known, 1e-8)


def network(dtype):
    """A small network on digits, with curvature between the weights and the parameters."""
    shards = HyperCleaning.shards(agents=40, seed=1, dataset="digits", heterogeneity=1.0)
    task = HyperCleaning(agent=3, agents=40, seed=1, shard=shards[3], hidden=6, batch=20)
    task.to(bench.CPU, dtype)
    x, y = task.start()
    rng = torch.Generator().manual_seed(2)
    x, z = (torch.randn(len(s), generator=rng, dtype=torch.float64).to(dtype) for s in (x, y))
    return task, {"x": x, "y": y, "z": z / 4}, task.sample(5)


def gradients(task, x, y, xi):
    at = x.clone().requires_grad_(), y.clone().requires_grad_()
    return torch.autograd.grad(task.lower(*at, xi), at)


def test_products_are_finite_differences_of_gradients_on_a_network():
    task, w, xi = network(torch.float64)
    x, y, z = w["x"], w["y"], w["z"]
    h = 1e-6
    ahead, behind = (gradients(task, x, y + shift, xi) for shift in (h * z, -h * z))
    jvp, hvp = ((a - b) / (2 * h) for a, b in zip(ahead, behind, strict=True))
    leaf = y.clone().requires_grad_()
    (f_y,) = torch.autograd.grad(task.upper(x, leaf, xi), leaf)
    D = soba(task, w, xi)
    assert_close(D, {"x": -jvp, "y": gradients(task, x, y, xi)[1], "z": hvp - f_y}, 1e-7)
    assert min(jvp.abs().max(), hvp.abs().max()) > 1e-3, "there is something to differ in"


@pytest.mark.parametrize(("dtype", "relative"), [(torch.float64, 1e-9), (torch.float32, 1e-3)])
@pytest.mark.parametrize("length", [1e-3, 1.0, 300.0])
def test_the_first_order_variant_is_close_on_a_network(dtype, relative, length):
    """The products themselves, whatever the length of z."""
    task, w, xi = network(dtype)
    w["z"] = w["z"] * (length / w["z"].norm())
    nothing = {**w, "z": torch.zeros_like(w["z"])}
    exact, near, at_zero = soba(task, w, xi), soba_first_order(task, w, xi), soba(task, nothing, xi)
    for v in ("x", "z"):
        error = (near[v] - exact[v]).norm() / (exact[v] - at_zero[v]).norm()
        assert error < relative, (v, float(error))
    assert torch.equal(near["y"], exact["y"])


def test_without_z_there_are_no_products():
    w = point() | {"z": torch.zeros(4, dtype=torch.float64)}
    assert_close(soba_first_order(Curved(), w, XI), soba(Curved(), w, XI), 0)


class Affine:
    """A lower level without curvature and an upper one that says nothing."""

    def upper(self, x, y, batch):
        return torch.zeros((), dtype=x.dtype)

    def lower(self, x, y, batch):
        return y.sum()


@pytest.mark.parametrize(
    "pieces", [soba, soba_first_order, lower_gradient, linear_residual, hypergradient]
)
def test_losses_may_not_depend_on_a_variable(pieces):
    D = pieces(Flat(), point(), None)
    w = point()
    known = {"x": torch.zeros_like(w["x"]), "y": 2 * (w["y"] - 1), "z": 2 * w["z"] - 2 * w["y"]}
    assert_close(D, known, 1e-8)
    zeros = {v: torch.zeros_like(s) for v, s in w.items()}
    assert_close(pieces(Affine(), w, None), zeros | {"y": torch.ones_like(w["y"])}, 0)


@pytest.mark.parametrize(
    "pieces", [soba, soba_first_order, lower_gradient, linear_residual, hypergradient]
)
def test_the_point_is_left_alone_and_the_result_remembers_no_graph(pieces):
    w = point()
    before = {v: s.clone() for v, s in w.items()}
    D = pieces(Curved(), w, XI)
    assert all(torch.equal(w[v], before[v]) and not w[v].requires_grad for v in w)
    assert not any(s.requires_grad for s in D.values())
