"""The neighbour average where the network changes: dense W_k X, and nothing on links that rest."""

import bench
import numpy as np
import oracle
import pytest
import torch
from networks import dense
from spoiling import record_plans, spoil
from wirings import WIRINGS

from sundsbo_mpi.agent import Agent, Observer
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports import graph
from sundsbo_mpi.ranks.control import Control
from sundsbo_mpi.topology import SEQUENCES, Cycle

ITERATIONS = 12
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13}


def resting(n):
    """A ring, then everyone alone, then agents 0 and 1 alone with each other, then a shift."""
    pair = np.eye(n)
    pair[:2, :2] = 1 / min(n, 2)
    to_next = (np.eye(n) + np.roll(np.eye(n), 1, axis=0)) / 2
    return Cycle([dense("ring", n), np.eye(n), pair, to_next], "resting")


def directed(n):
    """One directed matrix for ever: i sends to i + 1 and, with less weight, to i + 2."""
    P = np.roll(np.eye(n), 1, axis=0)
    return Cycle([0.5 * np.eye(n) + 0.3 * P + 0.2 * P @ P], "directed")


def random(n):
    if n < 3:  # nothing to draw: another network that changes, so that no test is left out
        return resting(n)
    return SEQUENCES["random"](n, neighbours=2, neighbours_max=n - 1, every=2)


SEQUENCES_OF = {
    "one-peer": SEQUENCES["one-peer"],
    "random": random,
    "resting": resting,
    "directed": directed,
}
every_wiring = pytest.mark.parametrize("wiring", WIRINGS)
every_sequence = pytest.mark.parametrize("make", SEQUENCES_OF.values(), ids=SEQUENCES_OF)


def numbers(agent, length, dtype, salt):
    rng = np.random.default_rng([agent, length, salt])
    return torch.tensor(rng.standard_normal(length), dtype=dtype)


def expected(W, agent, length, dtype, salt):
    X = np.stack([numbers(j, length, dtype, salt).numpy() for j in range(len(W))])
    return W[agent] @ X.astype(np.float64)


@pytest.fixture
def wiring():
    return "auto, pairs"


@pytest.fixture
def connect(comm, wiring):
    opened = []

    def connect(mixing):
        opened.append(Gossip(comm, mixing, Clock(), WIRINGS[wiring](comm.rank)))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


@every_wiring
@every_sequence
def test_equals_the_dense_product_of_the_iteration(comm, connect, make, monkeypatch):
    """Two rounds an iteration, of different lengths; between them all buffers hold NaN."""
    mixing = make(comm.size)
    gossip, plans = connect(mixing), record_plans(monkeypatch)
    for k in range(ITERATIONS):
        gossip.turn_to(k)
        W = mixing.at(k).toarray()
        for length, dtype in ((7, torch.float64), (130, torch.float32)):
            spoil(plans)
            (v_bar,) = gossip.average((numbers(comm.rank, length, dtype, k),))
            want = expected(W, comm.rank, length, dtype, k)
            np.testing.assert_allclose(v_bar.numpy(), want, rtol=0, atol=TOLERANCE[dtype])


class Watched:
    """A communicator that remembers to whom messages went and from whom they were awaited."""

    def __init__(self, graph):
        self.graph, self.sent, self.awaited = graph, [], []

    def Isend(self, message, receiver, tag):
        self.sent.append(receiver)
        return self.graph.Isend(message, receiver, tag)

    def Irecv(self, message, sender, tag):
        self.awaited.append(sender)
        return self.graph.Irecv(message, sender, tag)

    def Free(self):
        self.graph.Free()


@pytest.mark.parametrize("wiring", ["p2p", "auto, apart"])
@pytest.mark.parametrize("make", [SEQUENCES["one-peer"], random, resting], ids=str)
def test_links_that_rest_carry_nothing_and_only_the_others_are_counted(
    comm, connect, make, monkeypatch
):
    mixing = make(comm.size)
    if mixing.steady:  # one peer of one agent or two
        mixing = resting(comm.size)
    made, to = [], graph._connect
    monkeypatch.setattr(
        graph, "_connect", lambda *links: made.append(Watched(to(*links))) or made[-1]
    )
    gossip = connect(mixing)
    (watched,) = made
    bytes_to = dict.fromkeys(gossip.neighbours, 0)
    messages = 0
    for k in range(ITERATIONS):
        gossip.turn_to(k)
        W = mixing.at(k).toarray()
        gossip.average((torch.ones(5, dtype=torch.float64), torch.ones(4, dtype=torch.float64)))
        others = [j for j in range(comm.size) if j != comm.rank]
        receivers = [j for j in others if W[j, comm.rank] > 0]
        assert watched.sent == receivers
        assert watched.awaited == [j for j in others if W[comm.rank, j] > 0]
        watched.sent, watched.awaited = [], []
        for j in receivers:
            bytes_to[j] += 9 * 8
        messages += len(receivers)
    assert gossip.traffic.rounds == ITERATIONS
    assert gossip.traffic.messages == messages
    assert gossip.traffic.bytes_to.tolist() == list(bytes_to.values())


def test_the_bytes_of_all_agents_are_in_the_order_of_the_edges(comm, connect):
    mixing = SEQUENCES["one-peer"](comm.size)
    gossip = connect(mixing)
    pairs = Tally(comm).gather([(comm.rank, j) for j in gossip.neighbours])
    if pairs is not None:
        assert [list(pair) for of_agent in pairs for pair in of_agent] == mixing.edges().tolist()


def test_a_result_survives_the_rounds_of_other_matrices(comm, connect, monkeypatch):
    mixing = resting(comm.size)
    gossip, plans = connect(mixing), record_plans(monkeypatch)
    kept = []
    for k in range(4):
        gossip.turn_to(k)
        kept.append(gossip.average((numbers(comm.rank, 6, torch.float64, k),))[0])
    spoil(plans)
    for k, v_bar in enumerate(kept):
        want = expected(mixing.at(k).toarray(), comm.rank, 6, torch.float64, k)
        np.testing.assert_allclose(v_bar.numpy(), want, rtol=0, atol=1e-13)


OPTIONS = {"step_x": 0.05, "step_y": 0.08, "step_theta": 0.04, "gamma": 0.5, "estimator": "storm"}


@pytest.mark.parametrize("wiring", ["auto, pairs", "shared", "staged, shared"])
@every_sequence
@pytest.mark.parametrize("name", ["sun-dsbo-se", "sun-dsbo-gt", "sun-dsbo-semi-gt"])
def test_agents_follow_the_recursion_with_the_matrix_of_each_iteration(comm, connect, make, name):
    tasks = bench.quadratics(comm.size, task=bench.Elsewhere, noise=0.2)
    mixing = make(comm.size)
    history = oracle.trajectory(
        oracle.Quadratic(comm.size, bench.SEED),
        lambda k: mixing.at(k).toarray(),
        bench.start_of(tasks),
        ITERATIONS,
        bench.setting(name, OPTIONS, bench.noise_of(tasks)),
    )
    agent = Agent(
        task=tasks[comm.rank],
        algorithm=bench.build(name, comm.size, ITERATIONS, **OPTIONS),
        gossip=connect(mixing),
        tally=Tally(comm),
        control=Control(Tally(comm)),
        clock=Clock(),
        iterations=ITERATIONS,
        eval_every=ITERATIONS,
    )
    w = agent.run(Observer()).w
    agent.control.close()
    for v, rows in history.items():
        np.testing.assert_allclose(w[v].numpy(), rows[-1][comm.rank], rtol=0, atol=1e-12)
