"""What tasks offer as ``saddle`` against autograd on their two losses."""

import math

import pytest
import test_tasks_hyper_cleaning as hyper_cleaning
import test_tasks_hyper_representation as hyper_representation
import test_tasks_hyperparameter as hyperparameter
import test_tasks_meta_learning as meta_learning
import torch
from labelled_samples import AGENTS, COLOURS, DATA

from sundsbo_mpi.composition.directions import saddle_of_losses, sun
from sundsbo_mpi.tasks.base import Penalty
from sundsbo_mpi.tasks.hyperparameter import Hyperparameter
from sundsbo_mpi.tasks.saddle import ridge_and_proximal
from sundsbo_mpi.tasks.shards import labelled_shards


def ridge_of_images():
    shard = labelled_shards(DATA, AGENTS, 0, heterogeneity=1.0)[2]
    return Hyperparameter(agent=2, agents=AGENTS, seed=0, shard=shard, dataset="digits", batch=4)


TASKS = {
    "hyper-cleaning": lambda: hyper_cleaning.build()[0][1],
    "hyper-cleaning, a sample twice in a batch": lambda: hyper_cleaning.build(batch=17)[0][2],
    "hyper-cleaning, one unit, one sample": lambda: hyper_cleaning.build(batch=1, hidden=1)[0][0],
    "hyper-cleaning, no regulariser": lambda: hyper_cleaning.build(alpha=0, hidden=33)[0][0],
    "hyper-representation": lambda: hyper_representation.build()[0],
    "hyper-representation, wide": lambda: hyper_representation.build(batch=9, hidden=64)[0],
    "hyper-representation, convolutions": lambda: hyper_representation.build(COLOURS)[0],
    "hyperparameter, synthetic": lambda: hyperparameter.synthetic()[0],
    "hyperparameter, images": ridge_of_images,
    "meta-learning": lambda: meta_learning.build()[0][1],
}


def point(task, dtype):
    """Not far from the start, where a network is alive."""
    rng = torch.Generator().manual_seed(3)
    x, y = task.start()
    start = {"x": x, "y": y, "theta": y}
    return {v: s + torch.randn(len(s), generator=rng, dtype=dtype) / 5 for v, s in start.items()}


@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
@pytest.mark.parametrize(("mu", "gamma"), [(0.0, 0.3), (0.7, 70.0), (0.7, math.inf)])
@pytest.mark.parametrize("name", TASKS)
def test_it_is_that_of_the_losses(name, mu, gamma, dtype, error):
    task = TASKS[name]()
    task.to(torch.device("cpu"), dtype)
    w = point(task, dtype)
    before = {v: s.clone() for v, s in w.items()}
    everything = [task.everything()] if hasattr(task, "everything") else []
    for batch in (task.sample(3), *everything):
        expected = saddle_of_losses(task, w, batch, Penalty(mu, gamma))
        found = task.saddle(w["x"], w["y"], w["theta"], batch, Penalty(mu, gamma))
        for mine, theirs in zip(found, expected, strict=True):
            assert (mine.dtype, mine.shape, mine.requires_grad) == (dtype, theirs.shape, False)
            assert theirs.norm() > 0
            assert (mine - theirs).norm() <= error * theirs.norm()
    assert all(torch.equal(w[v], before[v]) for v in w)


def test_the_direction_is_made_of_what_a_task_offers():
    class Offering:
        def saddle(self, x, y, theta, batch, penalty):
            return x * batch, y * penalty.mu, theta + penalty.gamma

    w = {v: torch.tensor([n, -n]) for v, n in (("x", 2.0), ("y", 3.0), ("theta", 7.0))}
    D = sun(Offering(), w, 10, mu=0.5, gamma=0.25)
    assert D["x"].tolist() == [20, -20]
    assert D["y"].tolist() == [1.5, -1.5]
    assert D["theta"].tolist() == [7.25, -6.75]


def test_an_agent_moves_its_own_entries_of_x_alone():
    task = TASKS["hyper-cleaning"]()
    batch = task.sample(3)
    w = point(task, torch.float64)
    S_x = task.saddle(w["x"], w["y"], w["theta"], batch, Penalty(0.7, 0.3))[0]
    own = task.train_samples + batch.train_places
    assert sorted(S_x.nonzero().flatten().tolist()) == sorted(own.tolist())


@pytest.mark.parametrize("ridge", [0.0, 1e-40, 1e-17, 2e-3, 0.5, 1.0, 40.0])
@pytest.mark.parametrize("gamma", [1e-9, 5e-3, 0.3, 1.0, 1.5, 70.0, 1e12, 1e300, math.inf])
@pytest.mark.parametrize("apart", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_ridge_and_proximal_term_together(ridge, gamma, apart, dtype):
    """To the rounding of each of the two terms, or of the numbers that a dtype has beside 0."""
    rng = torch.Generator().manual_seed(1)
    y, shift = torch.randn(2, 50, generator=rng, dtype=dtype)
    theta = y + apart * shift
    away = (theta.double() - y.double()) / gamma
    found = ridge_and_proximal(y, theta, ridge, gamma)
    assert found[0].vector is not found[1].vector
    for (vector, factor), v in zip(found, (y, theta), strict=True):
        assert vector is not v
        error = (vector.double() * factor - (ridge * v.double() + away)).abs()
        size = ridge * v.double().abs() + away.abs()
        limits = torch.finfo(dtype)
        assert bool((error <= 4 * limits.eps * size + limits.tiny * factor).all())
