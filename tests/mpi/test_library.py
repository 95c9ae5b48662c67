"""``solve`` over any communicator: what the oracle's recursions say, alike on all ranks."""

import bench
import numpy as np
import oracle
import pytest
import torch
from networks import dense
from torch.autograd.function import once_differentiable

from sundsbo_mpi import Weights, build_weights, solve
from sundsbo_mpi.comm.waiting import Sparing
from sundsbo_mpi.errors import AgreedError, DivergedError

ITERATIONS = 20
METHOD = "sun-dsbo-gt"
OPTIONS = bench.lively(METHOD)


def matrix(agents):
    """Uneven degrees, positive definite: safe for every method."""
    return (np.eye(agents) + dense("erdos-renyi", agents)) / 2


def solved(comm, **changes):
    task = bench.quadratics(comm.size, noise=0.2)[comm.rank]
    asked = {"method": METHOD, "iterations": ITERATIONS, "eval_every": 7, **OPTIONS, **changes}
    return solve(task, Weights(matrix(comm.size), "test"), comm, **asked)


def expected(agents):
    """Return the oracle's history of every variable, (K + 1, n, d)."""
    tasks, problem = bench.quadratics(agents, noise=0.2), oracle.Quadratic(agents, bench.SEED)
    return bench.history_of(METHOD, OPTIONS, tasks, problem, matrix(agents), ITERATIONS)


def test_it_is_the_recursion(comm):
    found, rows = solved(comm), expected(comm.size)
    for v, history in rows.items():
        np.testing.assert_allclose(found.own[v], history[-1][comm.rank], rtol=0, atol=1e-12)
    for v in ("x", "y"):
        np.testing.assert_allclose(getattr(found, v), rows[v][-1].mean(0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("crowded", [False, True])
def test_messages_and_words_are_waited_for_as_a_crowd_of_ranks_wants_it(comm, crowded, monkeypatch):
    waits, wait = [], Sparing.all
    monkeypatch.setattr(Sparing, "all", lambda self, r: (waits.append(r), wait(self, r)))
    cores = {0} if crowded else set(range(comm.size))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: cores, raising=False)
    solved(comm)
    if crowded and comm.size > 1:
        assert len(waits) >= (2 + 1) * ITERATIONS  # rounds, and the word on going on
    else:
        assert waits == []


def test_the_history_is_that_of_the_average(comm):
    found, rows = solved(comm), expected(comm.size)
    assert [row["iteration"] for row in found.history] == [0, 7, 14, 20]
    assert comm.allgather(found.history) == [found.history] * comm.size
    tasks = bench.quadratics(comm.size)
    for row in found.history:
        x, y = (rows[v][row["iteration"]] for v in ("x", "y"))
        mean = [torch.from_numpy(v.mean(0)) for v in (x, y)]
        upper = np.mean([task.report(*mean)["upper_loss"] for task in tasks])
        assert row["upper_loss"] == pytest.approx(upper, rel=1e-10)
        away = np.square(y - y.mean(0)).sum(1).mean()
        assert row["consensus_y"] == pytest.approx(away, rel=1e-8, abs=1e-20)
    # x, y, theta and their trackers to every neighbour
    numbers = 2 * (x.shape[1] + 2 * y.shape[1])
    links = np.count_nonzero(matrix(comm.size)) - comm.size
    assert found.history[-1]["bytes"] == ITERATIONS * links * numbers * 8
    assert any(note.startswith("transport: ") for note in found.notes)


def test_groups_of_ranks_solve_their_own_problems_at_once(comm):
    """With a message of the caller's underway, which must meet none of ours."""
    asked = comm.irecv(source=(comm.rank - 1) % comm.size)
    part = comm.Split(color=comm.rank % 2)
    found, rows = solved(part), expected(part.size)
    np.testing.assert_allclose(found.own["x"], rows["x"][-1][part.rank], rtol=0, atol=1e-12)
    comm.send(comm.rank, dest=(comm.rank + 1) % comm.size)
    assert asked.wait() == (comm.rank - 1) % comm.size
    part.Free()


class Private:
    """x_i is agent i's alone: f_i = |y - 1|^2, g_i = |y|^2 + (x_i - i)^2."""

    def __init__(self, comm):
        self.agent, self.sizes = comm.rank, {"x": comm.size, "y": 2}
        self.private = slice(comm.rank, comm.rank + 1)

    def start(self):
        return torch.zeros(self.sizes["x"]), torch.zeros(2)

    def sample(self, k, draw=0):
        return None

    def upper(self, x, y, batch):
        return (y - 1).square().sum() + (x[self.agent] - self.agent).square()

    def lower(self, x, y, batch):
        return y.square().sum()

    def report(self, x, y):
        return {}


def test_private_coordinates_come_from_their_owners(comm):
    weights = Weights(matrix(comm.size), "test")
    step = {"step_x": 0.2 * comm.size, "step_y": 0.1, "step_theta": 0.1}
    found = solve(Private(comm), weights, comm, private=True, mu0=1.0, p=0.0, iterations=60, **step)
    np.testing.assert_allclose(found.x, np.arange(comm.size), atol=1e-4)
    assert found.x.dtype == torch.float32


def refused(comm, words, **changes):
    with pytest.raises(AgreedError, match=words):
        solved(comm, **changes)
    assert comm.allreduce(1) == comm.size  # all have come here, and can go on


def test_what_cannot_be_is_refused_on_all_ranks(comm):
    refused(comm, "unknown algorithm 'sun-dsbo-gd': did you mean", method="sun-dsbo-gd")
    refused(comm, "unknown setting 'algorithm.step_u': did you mean", step_u=1.0)
    refused(comm, "run.iterations is -1: expected", iterations=-1)
    task = bench.quadratics(comm.size)[comm.rank]
    with pytest.raises(AgreedError, match=f"has {comm.size + 1} agents but the communicator has"):
        solve(task, build_weights("complete", comm.size + 1), comm)


class Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v):
        return v / 2

    @staticmethod
    @once_differentiable
    def backward(ctx, slope):
        return slope / 2


class Once(Private):
    def lower(self, x, y, batch):
        return Halved.apply(y).square().sum()


def test_second_derivatives_that_autograd_would_take_for_zero(comm):
    weights = Weights(matrix(comm.size), "test")
    with pytest.raises(AgreedError, match=r"sldbo needs .* Halved is marked once_differentiable"):
        solve(Once(comm), weights, comm, method="sldbo")


def test_ranks_that_ask_for_other_things_are_told(comm):
    if comm.size == 1:
        return
    refused(comm, r"give solve\(\) the same method", iterations=10 + comm.rank)
    start = bench.quadratics(comm.size, d_y=3 + comm.rank)[comm.rank]
    with pytest.raises(AgreedError, match="must be equal on all agents"):
        solve(start, Weights(matrix(comm.size), "test"), comm)


def test_a_step_that_is_too_long_is_named_on_all_ranks(comm):
    with pytest.raises(DivergedError, match="likely, in this order: step_y = 1e"):
        solved(comm, iterations=400, step_y=1e6)
    assert comm.allreduce(1) == comm.size
