"""Messages move while an agent makes no call to MPI itself."""

import time

import numpy as np
import pytest
import torch
from networks import dense

from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.progress import Progress, threads_may_take_turns
from sundsbo_mpi.outgoing import Outgoing
from sundsbo_mpi.topology import Weights

PATIENCE_SECONDS = 20


def test_mpi_lets_threads_take_turns(comm):
    assert threads_may_take_turns()


@pytest.mark.parametrize("length", [1, 300_000])
def test_messages_arrive_while_nobody_waits_for_them(comm, length):
    """Large messages need both sides: an agent that only computes would keep the others."""
    W = dense("ring", comm.size)
    gossip = Gossip(comm, Weights(W, "test"), Clock())
    arrived = []

    def move():
        arrived.append(gossip.progress())
        return arrived[-1]

    progress = Progress(move)
    v = torch.full((length,), float(comm.rank), dtype=torch.float64)
    mean = W[comm.rank] @ np.arange(comm.size)
    for _ in range(5):
        arrived.clear()
        gossip.post(Outgoing((v,)))
        began = time.monotonic()
        with progress:
            while not any(arrived) and time.monotonic() - began < PATIENCE_SECONDS:
                time.sleep(0.001)
        assert any(arrived)
        (averaged,) = gossip.collect()
        torch.testing.assert_close(averaged, torch.full_like(v, mean))
    progress.close()
    gossip.close()
