"""Bytes over the network and through shared memory, on machines that are made up."""

import bench
import numpy as np
import pytest
from networks import GRAPHS, dense

from sundsbo_mpi.agent import Agent, Observer
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.measuring.evaluation import Evaluation
from sundsbo_mpi.ranks.control import Control
from sundsbo_mpi.topology import Weights

ITERATIONS = 4
NUMBERS = 5 + 2 * 8
"""What SE sends to each neighbour in an iteration: x, y and theta of the quadratic, once."""

PLACEMENTS = {
    "one host": lambda rank: 0,
    "two hosts in turn": lambda rank: rank % 2,
    "two hosts, the first for rank 0 alone": lambda rank: min(rank, 1),
    "a host for each": lambda rank: rank,
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("place", PLACEMENTS.values(), ids=PLACEMENTS)
def test_bytes_over_the_network_are_those_on_edges_between_hosts(comm, graph, place):
    W = dense(graph, comm.size)
    hosts = tuple(place(rank) for rank in range(comm.size))
    clock, tally = Clock(), Tally(comm)
    gossip = Gossip(comm, Weights(W, "test"), clock)
    agent = Agent(
        task=bench.quadratics(comm.size)[comm.rank],
        algorithm=bench.build("sun-dsbo-se", comm.size, ITERATIONS, step_x=0.01, step_y=0.01),
        gossip=gossip,
        tally=tally,
        control=Control(tally),
        clock=clock,
        iterations=ITERATIONS,
        eval_every=ITERATIONS,
    )
    rows = []
    observer = Observer()
    observer.evaluate = Evaluation(agent, hosts, False, lambda row, w: rows.append(row))
    agent.run(observer)
    agent.close()
    if not tally.is_root:
        assert rows == [None, None]
        return
    linked = (W > 0) & ~np.eye(comm.size, dtype=bool)
    apart = linked & (np.array(hosts)[:, None] != np.array(hosts))
    assert [row.iteration for row in rows] == [0, ITERATIONS]
    for row in rows:
        on_edge = row.iteration * NUMBERS * 8
        sent = {name: row.agents[f"bytes_{name}"] for name in ("payload", "network", "shared")}
        assert sent["payload"].tolist() == (on_edge * linked.sum(axis=1)).tolist()
        assert sent["network"].tolist() == (on_edge * apart.sum(axis=1)).tolist()
        assert (sent["network"] + sent["shared"]).tolist() == sent["payload"].tolist()
        assert row.edge_bytes.tolist() == [on_edge] * linked.sum()
