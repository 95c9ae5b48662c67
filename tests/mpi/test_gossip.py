"""The neighbour average equals W X for dense W and X, at any number of agents."""

import itertools

import numpy as np
import pytest
import torch
from networks import GRAPHS, dense, uneven_ring
from spoiling import record_plans, spoil
from wirings import WIRINGS

from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports import messages
from sundsbo_mpi.comm.transports.network import Wires
from sundsbo_mpi.errors import AgreedError
from sundsbo_mpi.outgoing import Difference, Outgoing
from sundsbo_mpi.topology import Weights

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13}
DTYPES = list(TOLERANCE)


def numbers(agent, length, dtype, salt=0):
    """What an agent sends: any rank can work out what any other one sent."""
    rng = np.random.default_rng([agent, length, salt])
    return torch.tensor(rng.standard_normal(length), dtype=dtype)


def expected(W, agent, length, dtype, salt=0):
    X = np.stack([numbers(j, length, dtype, salt).numpy() for j in range(len(W))])
    return W[agent].astype(np.float64) @ X.astype(np.float64)


@pytest.fixture(params=WIRINGS)
def connect(comm, request):
    """Connect the agents by a matrix; all are disconnected when the test ends."""
    opened = []

    def connect(W):
        wires = WIRINGS[request.param](comm.rank)
        opened.append(Gossip(comm, Weights(W, "test"), Clock(), wires))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


def assert_close(got, want, dtype):
    np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("name", GRAPHS)
def test_equals_the_dense_product(comm, connect, name):
    W = dense(name, comm.size)
    gossip = connect(W)
    for dtype, lengths in itertools.product(DTYPES, [(7,), (1, 13), (3, 1, 129)]):
        sent = tuple(numbers(comm.rank, length, dtype) for length in lengths)
        kept = tuple(v.clone() for v in sent)
        averaged = gossip.average(sent)
        assert [v.numel() for v in averaged] == list(lengths)
        for v_bar, length in zip(averaged, lengths, strict=True):
            assert v_bar.dtype == dtype
            assert_close(v_bar, expected(W, comm.rank, length, dtype), dtype)
        assert all(torch.equal(v, before) for v, before in zip(sent, kept, strict=True))


def test_every_edge_has_its_own_weight(comm, connect):
    W = uneven_ring(comm.size)
    (v_bar,) = connect(W).average((numbers(comm.rank, 11, torch.float64),))
    assert_close(v_bar, expected(W, comm.rank, 11, torch.float64), torch.float64)


def test_lazy_weights_keep_half(comm):
    W = dense("ring", comm.size)
    lazy = Gossip(comm, Weights(W, "test").lazy(), Clock())
    v = numbers(comm.rank, 9, torch.float64)
    (v_bar,) = lazy.average((v,))
    want = (v.numpy() + expected(W, comm.rank, 9, torch.float64)) / 2
    assert_close(v_bar, want, torch.float64)
    lazy.close()


def test_rounds_of_changing_lengths_and_dtypes(comm, connect, monkeypatch):
    """Between rounds every buffer holds NaN: what comes out has just come in."""
    W = dense("erdos-renyi", comm.size)
    gossip = connect(W)
    plans = record_plans(monkeypatch)
    for turn, (length, dtype) in enumerate(itertools.product([5, 64, 1, 5, 4097], DTYPES * 2)):
        spoil(plans)
        v = numbers(comm.rank, length, dtype, salt=turn)
        (v_bar,) = gossip.average((v,))
        assert_close(v_bar, expected(W, comm.rank, length, dtype, salt=turn), dtype)
    assert len(plans) == 4 * 2


def test_messages_of_one_length_share_an_exchange_however_they_are_cut(comm, connect, monkeypatch):
    W = dense("ring", comm.size)
    gossip = connect(W)
    plans = record_plans(monkeypatch)
    for turn, lengths in enumerate([(3, 5), (5, 3), (5, 3), (8,), (3, 5), (5, 3)]):
        spoil(plans)
        sent = numbers(comm.rank, 8, torch.float64, salt=turn)
        averages = gossip.average(sent.split_with_sizes(lengths))
        assert tuple(map(len, averages)) == lengths
        want = expected(W, comm.rank, 8, torch.float64, salt=turn)
        assert_close(torch.cat(averages), want, torch.float64)
    assert len(plans) == 1


def test_a_result_survives_later_rounds(comm, connect, monkeypatch):
    W = dense("complete", comm.size)
    gossip = connect(W)
    plans = record_plans(monkeypatch)
    kept = [gossip.average((numbers(comm.rank, 6, torch.float64, k),))[0] for k in range(4)]
    spoil(plans)
    for k, v_bar in enumerate(kept):
        assert_close(v_bar, expected(W, comm.rank, 6, torch.float64, k), torch.float64)


def test_fused_equals_separate(comm, connect):
    gossip = connect(dense("exponential", comm.size))
    tensors = [numbers(comm.rank, length, torch.float32) for length in (31, 2, 1000)]
    fused = gossip.average(tensors)
    separate = [gossip.average((v,))[0] for v in tensors]
    for one, other in zip(fused, separate, strict=True):
        assert torch.equal(one, other)


def test_views_of_a_longer_tensor_are_sent_right(comm, connect):
    W = dense("star", comm.size)
    long = numbers(comm.rank, 20, torch.float64)
    strided, shifted = connect(W).average((long[::2], long[3:8]))
    want = expected(W, comm.rank, 20, torch.float64)
    assert_close(strided, want[::2], torch.float64)
    assert_close(shifted, want[3:8], torch.float64)


def test_the_average_is_kept_and_reached(comm, connect):
    """Doubly stochastic: the mean over the agents is kept; connected: all come to it."""
    gossip = connect(dense("ring", comm.size))
    (v,) = start = (numbers(comm.rank, 4, torch.float64),)
    mean = Tally(comm).mean(start[0].numpy())
    for _ in range(200):
        (v,) = gossip.average((v,))
    np.testing.assert_allclose(v.numpy(), mean, atol=1e-12)


def test_a_difference_is_averaged_as_if_it_had_been_computed_before(comm, connect):
    gossip = connect(dense("ring", comm.size))
    a, b = (numbers(comm.rank, 501, torch.float32, salt) for salt in (0, 1))
    gossip.post(Outgoing((a[:7], Difference(a, 0.3, b), b)))
    written = gossip.collect()
    computed = gossip.average((a[:7], a.sub(b, alpha=0.3), b))
    for one, other in zip(written, computed, strict=True):
        assert torch.equal(one, other)


def test_rounding_is_repeatable(comm, connect):
    """Terms come in a fixed order, so two runs agree bit for bit."""
    v = (numbers(comm.rank, 500, torch.float32),)
    first, second = (connect(dense("complete", comm.size)).average(v)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_not_a_number_is_not_hidden(comm, connect):
    W = dense("star", comm.size)
    v = torch.ones(3)
    if comm.rank == 0:
        v[1] = torch.nan
    (v_bar,) = connect(W).average((v,))
    assert v_bar.isnan().tolist() == [False, W[comm.rank, 0] > 0, False]


def test_what_was_sent_is_counted(comm, connect):
    W = dense("erdos-renyi", comm.size)
    gossip = connect(W)
    links = [j for j in range(comm.size) if j != comm.rank and W[comm.rank, j] > 0]
    assert gossip.neighbours == tuple(links)
    for lengths, dtype in (((10, 3), torch.float32), ((5,), torch.float64), ((1,), torch.float32)):
        gossip.average([numbers(comm.rank, length, dtype) for length in lengths])
    traffic = gossip.traffic
    assert traffic.rounds == 3
    assert traffic.messages == 3 * len(links)
    assert traffic.bytes_to.tolist() == [4 * 13 + 8 * 5 + 4] * len(links)


def test_the_seconds_of_a_round_are_counted_by_phase(comm):
    clock = Clock()
    gossip = Gossip(comm, Weights(dense("ring", comm.size), "test"), clock)
    gossip.average((torch.ones(10),))
    gossip.close()
    assert all(clock.seconds[phase] > 0 for phase in ("pack", "wait", "mix"))
    assert clock.seconds["gradient"] == clock.seconds["evaluation"] == 0


def test_messages_of_others_do_not_interfere(comm, connect):
    """A second network and reductions on the same communicator, between the rounds of the first."""
    W, other = dense("ring", comm.size), dense("complete", comm.size)
    one, two = connect(W), connect(other)
    for k in range(5):
        v = numbers(comm.rank, 8, torch.float64, k)
        (first,) = one.average((v,))
        (second,) = two.average((v,))
        assert comm.allreduce(1) == comm.size
        assert_close(first, expected(W, comm.rank, 8, torch.float64, k), torch.float64)
        assert_close(second, expected(other, comm.rank, 8, torch.float64, k), torch.float64)


@pytest.mark.parametrize("transport", ["neighbor", "persistent"])
def test_a_payload_that_32_bit_counts_cannot_address_is_refused(comm, transport, monkeypatch):
    monkeypatch.setattr(messages, "LARGEST_COUNT", 9)
    W = dense("complete", comm.size)
    gossip = Gossip(comm, Weights(W, "test"), Clock(), Wires(transport))
    length = 9 // max(1, comm.size - 1)
    gossip.average((torch.ones(length),))
    if comm.size > 1:
        with pytest.raises(AgreedError, match="exceed"):
            gossip.average((torch.ones(length + 1),))
    gossip.close()


@pytest.mark.parametrize("transport", ["neighbor", "persistent"])
def test_what_one_agent_cannot_address_is_refused_by_all(comm, transport, monkeypatch):
    """In a star the centre alone has many neighbours."""
    monkeypatch.setattr(messages, "LARGEST_COUNT", 9)
    gossip = Gossip(comm, Weights(dense("star", comm.size), "test"), Clock(), Wires(transport))
    if comm.size > 2:
        with pytest.raises(AgreedError, match=f"{comm.size - 1} neighbours times 9 numbers"):
            gossip.average((torch.ones(9),))
    gossip.average((torch.ones(1),))
    gossip.close()


@pytest.mark.parametrize("wiring", WIRINGS)
def test_networks_can_be_made_and_closed_many_times(comm, wiring):
    """Requests and windows are freed before their communicators, and all are given back."""
    W = dense("ring", comm.size)
    for k in range(30):
        gossip = Gossip(comm, Weights(W, "test"), Clock(), WIRINGS[wiring](comm.rank))
        (v_bar,) = gossip.average((numbers(comm.rank, 3, torch.float64, k),))
        gossip.close()
        assert_close(v_bar, expected(W, comm.rank, 3, torch.float64, k), torch.float64)
