"""Agents over MPI do what the dense recursions of the oracle say, and end together."""

import time

import bench
import numpy as np
import oracle
import pytest
import torch
from networks import dense
from onlooker import Onlooker
from spoiling import record_plans, spoil
from wirings import WIRINGS

from sundsbo_mpi.agent import Agent
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm import words
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.errors import DivergedError
from sundsbo_mpi.ranks.control import Control, Stop
from sundsbo_mpi.topology import Weights

ITERATIONS = 20
VARIANTS = [v for v in bench.VARIANTS if v.values[1].get("estimator", "storm") == "storm"]
"""Of the estimators only the one that remembers most."""


def matrix(agents):
    """Uneven degrees, positive definite: safe for every method."""
    return (np.eye(agents) + dense("erdos-renyi", agents)) / 2


@pytest.fixture
def spoiling_gossip(monkeypatch):
    """Make a Gossip whose buffers, of sending and of receiving, hold NaN outside every round."""
    plans = record_plans(monkeypatch)

    class SpoilingGossip(Gossip):
        def post(self, outgoing):
            spoil(plans)
            super().post(outgoing)

        def collect(self):
            averaged = super().collect()
            spoil(plans)
            return averaged

    yield SpoilingGossip
    assert plans


@pytest.fixture(params=["persistent", "auto, pairs"])
def agent(comm, spoiling_gossip, request):
    """Make this rank's agent for a method; it is disconnected when the test ends."""
    opened = []

    def agent(name, tasks, options, eval_every=ITERATIONS):
        clock = Clock()
        mixing, wires = Weights(matrix(comm.size), "test"), WIRINGS[request.param](comm.rank)
        made = Agent(
            task=tasks[comm.rank],
            algorithm=bench.build(name, comm.size, ITERATIONS, **options),
            gossip=spoiling_gossip(comm, mixing, clock, wires),
            tally=Tally(comm),
            control=Control(Tally(comm)),
            clock=clock,
            iterations=ITERATIONS,
            eval_every=eval_every,
        )
        opened.append(made)
        return made

    yield agent
    for made in opened:
        made.close()


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_every_method_follows_its_recursion(comm, agent, name, variant):
    """Whatever an agent remembers of a round, reusing the buffers of that round leaves alone."""
    tasks = bench.quadratics(comm.size, task=bench.Elsewhere, noise=0.2)
    options = bench.lively(name, **variant)
    problem = oracle.Quadratic(comm.size, bench.SEED)
    history = bench.history_of(name, options, tasks, problem, matrix(comm.size), ITERATIONS)
    tolerance = 1e-8 if name == "d-soba-fo" else 1e-12
    seen = Onlooker()
    w = agent(name, tasks, options, eval_every=7).run(seen).w
    assert seen.evaluated == [0, 7, 14, 20]
    for v, rows in history.items():
        for done, at, _, before in seen.rows:
            np.testing.assert_allclose(at[v].numpy(), rows[done][comm.rank], rtol=0, atol=tolerance)
            if before is not None:
                expected = rows[done - 1][comm.rank]
                np.testing.assert_allclose(before[v].numpy(), expected, atol=tolerance)
        np.testing.assert_allclose(w[v].numpy(), rows[-1][comm.rank], rtol=0, atol=tolerance)


@pytest.fixture(params=[words.RADIX, 2], ids=["few agents", "many agents"])
def told(comm, request, monkeypatch):
    """How far from itself an agent tells words, in the one step of few agents or in several."""
    monkeypatch.setattr(words, "RADIX", request.param)
    return words.distances(comm.size)


class Troubled(bench.Quadratic):
    """The last agent's f_y is NaN in iteration 4."""

    def upper(self, x, y, batch):
        value = super().upper(x, y, batch)
        return value + y.sum() * torch.nan if self.spoilt else value

    def sample(self, k, draw=0):
        self.spoilt = k == 4 and self._agent == self._agents - 1
        return super().sample(k, draw)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("sun-dsbo-se", "y"),
        ("sun-dsbo-gt", "y"),
        ("sun-dsbo-ed", "y"),
        ("sparkle-gt", "z"),  # which takes it to x on other agents in the same iteration
    ],
)
def test_a_number_that_is_not_finite_ends_all_agents_and_names_its_origin(
    comm, agent, name, variable, told
):
    tasks = [Troubled(agent=i, agents=comm.size, seed=bench.SEED) for i in range(comm.size)]
    for i, task in enumerate(tasks):
        task.to(bench.CPU, torch.float64)
        task._agent, task._agents = i, comm.size
    seen = Onlooker()
    with pytest.raises(DivergedError) as caught:
        agent(name, tasks, bench.lively(name), eval_every=3).run(seen)
    assert f"of {variable} on agent {comm.size - 1} " in str(caught.value)
    assert "iteration 4" in str(caught.value)
    assert seen.evaluated == [0, 3]


@pytest.mark.parametrize("name", ["sun-dsbo-se", "sun-dsbo-gt"])
def test_agents_stop_in_the_same_iteration_when_the_time_of_the_last_is_over(
    comm, agent, name, told
):
    """Each agent runs ahead of the others as far as its neighbours let it."""
    tasks = bench.quadratics(comm.size, task=bench.Elsewhere)
    one = agent(name, tasks, bench.lively(name))

    def advance(done):
        if comm.rank == comm.size - 1:
            time.sleep(0.002)
            if done == 7:
                one.control.ask(Stop.WALLTIME)

    seen = Onlooker(advance)
    end = one.run(seen)
    last = 7 + len(told)
    assert (end.iterations, end.stop, seen.evaluated) == (last, Stop.WALLTIME, [0, last])
    assert one.control.turns == last - 1 + len(told), "and the last word is waited for"
    assert one.control.bytes == 8 * one.control.turns * sum(map(len, told))
    assert comm.allgather(end.iterations) == [last] * comm.size
