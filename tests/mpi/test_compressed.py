"""Compressed, rounded and private messages over MPI: the run of one process, bit by bit."""

import bench
import numpy as np
import pytest
import torch
from lockstep import Lockstep
from networks import dense

from sundsbo_mpi.algorithms.base import MethodOptions
from sundsbo_mpi.algorithms.sending import sending
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.averaging import average_over
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.topology import Weights

ITERATIONS = 12
FORMS = {
    "quantiser": {"compressor": "quantiser", "bits": 3, "block": 4},
    "top-k": {"compressor": "top-k", "fraction": 0.3},
    "random-k": {"compressor": "random-k", "fraction": 0.3},
    "fp16": {"wire": "fp16"},
    "bf16": {"wire": "bf16"},
    "two rounds": {"compressor": "quantiser", "gossip_steps": 2},
}


def in_order(W):
    """Average as ``Gossip`` does, to the bit, as a product of matrices does not."""
    links = [Weights(W, "test").links(i, 0) for i in range(len(W))]

    def deliver(vectors, _averages):
        rows = [
            average_over(at)(v_i, [vectors[j] for j in at.sources])
            for at, v_i in zip(links, vectors, strict=True)
        ]
        return torch.stack(rows)

    return deliver


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("technique", ["se", "gt", "non-atc-gt"])
def test_a_run_over_mpi_is_that_of_one_process(comm, technique, form):
    W = (np.eye(comm.size) + dense("ring", comm.size)) / 2
    options = MethodOptions(**FORMS[form])
    method = bench.build(f"sun-dsbo-{technique}", comm.size, **bench.lively("sun-dsbo-gt"))
    algorithm = sending(method, options, agents=comm.size, seed=2)
    tasks = bench.quadratics(comm.size, task=bench.Elsewhere, noise=0.2)

    alone = Lockstep(algorithm, tasks, W, in_order(W)).run(ITERATIONS)
    gossip = Gossip(comm, Weights(W, "test"), Clock())
    task = tasks[comm.rank]
    w, state = algorithm.start(task)
    for k in range(ITERATIONS):
        w, state = through(gossip, algorithm.step(task, k, w, state))
    sent = gossip.traffic.bytes_to.copy()
    gossip.close()

    for v in w:
        np.testing.assert_array_equal(w[v].numpy(), alone.rows(v)[comm.rank], err_msg=v)
    assert (sent == alone.bytes).all()


def through(gossip, step):
    averaged = None
    while True:
        try:
            outgoing = step.send(averaged)
        except StopIteration as end:
            return end.value
        gossip.post(outgoing)
        outgoing.meanwhile()
        averaged = gossip.collect()
