"""What the benchmarks set the program beside does what it is said to do."""

import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch
from networks import dense

from sundsbo_mpi.agent import Position
from sundsbo_mpi.topology import Weights

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)


@pytest.mark.parametrize("kind", ["Windows", "Messages"])
def test_rounds_by_hand_average_what_is_new_in_every_round(comm, kind):
    import rounds_by_hand

    W = dense("ring", comm.size)
    length, rounds = 1003, 7
    drawn = torch.from_numpy(np.random.default_rng(1).random((rounds, comm.size, length))).float()
    sent = iter(drawn[:, comm.rank])
    links = Weights(W, "test").links(comm.rank, 0)
    by_hand = getattr(rounds_by_hand, kind)(comm, links, length)
    for each in drawn:
        mean = torch.from_numpy(W[comm.rank]).float() @ each
        torch.testing.assert_close(by_hand.average(lambda slot: slot.copy_(next(sent))), mean)
    by_hand.close()


def test_plain_sockets_carry_every_byte_both_ways(comm):
    from plain_sockets import BYTE, PlainSockets

    size, done = 3_000_001, []
    sources = Weights(dense("ring", comm.size), "test").links(comm.rank, 0).sources
    sockets = PlainSockets(comm, "127.0.0.1", sources, size)
    assert len(sockets.received) == len(sources)
    for _ in range(2):
        for received in sockets.received:
            received[:] = bytes(size)
        comm.Barrier()
        sockets.beside(lambda: done.append(1))
        assert all(received == BYTE * size for received in sockets.received)
    assert len(done) == 2
    comm.Barrier()
    sockets.close()


@pytest.mark.parametrize(
    ("by_hand", "program"),
    [
        ("se apart", "se alone"),
        ("se by hand", "se messages"),
        ("se by hand, watched", "se shared"),
        ("gt by hand", "gt shared"),
        ("se by hand, messages", "se messages"),
        ("gt by hand, messages", "gt messages"),
    ],
)
def test_loops_by_hand_lead_where_the_program_does(comm, by_hand, program):
    import in_mpi
    from workload import PAYLOAD

    one, other = (in_mpi.agent(comm, name, 3) for name in (by_hand, program))
    begin = Position(0, *one.algorithm.start(one.task))
    with ExitStack() as to_close:
        loop = in_mpi.work(by_hand, one, begin, to_close)
        w = loop(3)
    expected = in_mpi.work(program, other, begin, ExitStack())(3).w
    assert sum(v.numel() for v in w.values()) == PAYLOAD
    for name, v in expected.items():
        assert torch.equal(w[name], v)
    for each in (one, other):
        each.close()


def test_a_turn_is_measured_after_a_few_iterations(comm):
    import jobs

    done = []

    def iterate(iterations):
        done.append(iterations)
        time.sleep(0.1)

    def meet():
        done.append("met")
        comm.Barrier()

    seconds, processor = jobs.measured(iterate, 4, meet)
    assert done == [jobs.COLD, "met", 4, "met"]
    assert seconds >= 0.1 / 4 > processor


def test_two_rounds_are_one_with_the_square(comm):
    import in_mpi

    def moved(name, rounds):
        one = in_mpi.agent(comm, name, rounds)
        sent = tuple(torch.full((n,), float(comm.rank + n)) for n in (5, 3))
        for _ in range(rounds):
            sent = one.gossip.average(sent)
        one.close()
        return sent

    for name in ("shared", "messages"):
        for twice, once in zip(moved(f"se twice {name}", 1), moved(f"se {name}", 2), strict=True):
            assert torch.equal(twice, once)
