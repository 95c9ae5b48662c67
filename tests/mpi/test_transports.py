"""What a transport promises: the same bits, an order that holds, and a word about itself."""

import ctypes
import os
import threading
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mpi4py import MPI
from networks import dense, uneven_ring
from wirings import WIRINGS, Queue

from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.averaging import average_over
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.transports import TRANSPORTS, messages, network, shared
from sundsbo_mpi.comm.transports.exchange import Exchange
from sundsbo_mpi.comm.transports.network import Network, Wires
from sundsbo_mpi.comm.transports.staging import Cuda, says_yes
from sundsbo_mpi.comm.waiting import Patient
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.outgoing import Outgoing
from sundsbo_mpi.topology import Cycle, Links, Weights

LENGTH = 200_003
"""Longer than what MPI libraries send at once."""


def message(agent, round_, length=LENGTH):
    rng = np.random.default_rng([agent, round_])
    return torch.tensor(rng.standard_normal(length), dtype=torch.float32)


def averaged(W, agent, v):
    """Return the mean that an agent should have of the messages v(j), to the bit."""
    sources = {j: W[agent, j] for j in np.flatnonzero(W[agent]).tolist() if j != agent}
    return average_over(Links(W[agent, agent], sources, ()))(v(agent), map(v, sources))


@pytest.fixture
def connect(comm):
    opened = []

    def connect(mixing, wires):
        opened.append(Gossip(comm, mixing, Clock(), wires))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


@pytest.mark.parametrize("wiring", WIRINGS)
def test_every_transport_gives_the_same_bits(comm, connect, wiring):
    W = uneven_ring(comm.size)
    gossip = connect(Weights(W, "test"), WIRINGS[wiring](comm.rank))
    for round_ in range(5):
        (v_bar,) = gossip.average((message(comm.rank, round_),))
        assert torch.equal(v_bar, averaged(W, comm.rank, partial(message, round_=round_)))


def directed(n):
    """i sends to i + 1 and nobody answers: nothing but tokens keeps the sender from running on."""
    P = np.roll(np.eye(n), 1, axis=0)
    return Cycle([(np.eye(n) + P) / 2], "directed")


def changing(n):
    P = np.roll(np.eye(n), 1, axis=0)
    return Cycle([(np.eye(n) + P) / 2, dense("ring", n), np.eye(n), (np.eye(n) + P.T) / 2], "turns")


@pytest.mark.parametrize("make", [directed, changing, lambda n: Weights(dense("ring", n), "ring")])
@pytest.mark.parametrize("late", [0, -1])
def test_nobody_fills_a_slot_that_a_slow_neighbour_still_reads(comm, connect, make, late):
    """One agent is slow between the arrival of the messages and the look at them."""
    mixing = make(comm.size)
    gossip = connect(mixing, Wires("shared"))
    slow = comm.rank == range(comm.size)[late]
    for k in range(8):
        gossip.turn_to(k)
        exchange = gossip._exchange_of(50, torch.float32)
        links = mixing.links(comm.rank, k)
        exchange.packed.fill_(100.0 * k + comm.rank)
        exchange.start(links)
        exchange.finish()
        time.sleep(0.01 * slow)
        for j, arrived in zip(links.sources, exchange.arrived, strict=True):
            assert (arrived == 100.0 * k + j).all()
        exchange.packed.fill_(torch.nan)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_progress_tells_when_all_is_there(comm, connect, wiring):
    gossip = connect(Weights(dense("ring", comm.size), "test"), WIRINGS[wiring](comm.rank))
    assert gossip.progress()
    for round_ in range(4):
        if comm.rank == 0:
            time.sleep(0.01)
        gossip.post(Outgoing((message(comm.rank, round_),)))
        helper = threading.Thread(target=until, args=(gossip.progress,))
        helper.start()
        helper.join()
        assert gossip.progress()
        gossip.collect()
        assert gossip.progress()


class Counting(Patient):
    """Waits inside MPI, and counts how often."""

    waits = 0

    def all(self, requests):
        self.waits += 1
        super().all(requests)


@pytest.mark.parametrize("wiring", [name for name in WIRINGS if "watched" not in name])
def test_messages_are_waited_for_as_was_asked(comm, connect, wiring):
    waiting = Counting()
    wires = replace(WIRINGS[wiring](comm.rank), waiting=waiting)
    gossip = connect(Weights(dense("ring", comm.size), "test"), wires)
    before = waiting.waits  # making the links may have tried devices
    for round_ in range(3):
        gossip.average((message(comm.rank, round_),))
        assert waiting.waits == before + round_ + 1


def until(done):
    while not done():
        time.sleep(1e-4)


def test_progress_does_not_tell_too_early(comm, connect):
    if comm.size == 1:
        assert connect(Weights(np.eye(1), "test"), Wires()).progress()
        return
    for transport in TRANSPORTS:
        gossip = connect(Weights(dense("complete", comm.size), "test"), Wires(transport))
        gossip.average((message(comm.rank, 0),))
        if comm.rank == 0:
            comm.Barrier()
        gossip.post(Outgoing((message(comm.rank, 1),)))
        if comm.rank > 0:
            assert not any(gossip.progress() for _ in range(20))  # rank 0 waits for this
            comm.Barrier()
        gossip.collect()


@pytest.mark.parametrize(
    ("transport", "part", "said"),
    [
        ("auto", lambda _: 0, "shared memory"),
        ("auto", lambda rank: rank, "persistent Neighbor_alltoallv"),
        (
            "auto",
            lambda rank: rank // 2,
            "shared memory within a node, persistent Neighbor_alltoallv between nodes",
        ),
        ("shared", lambda rank: rank // 2, "shared memory within a node, point to point between"),
        ("neighbor", lambda rank: rank // 2, "Neighbor_alltoallv"),
        ("p2p", lambda rank: rank // 2, "point to point"),
    ],
)
def test_the_routes_are_named(comm, connect, transport, part, said):
    ring = Weights(dense("ring", comm.size), "ring")
    connected = connect(ring, Wires(transport, part=part(comm.rank))).network
    if comm.size == 1:
        said = "no links"
    elif comm.size == 2 and "within" in said:  # both on the first node
        said = "shared memory"
    assert connected.description.startswith(said)
    assert connected.notes == ()
    assert len(set(comm.allgather(connected.description))) == 1


def test_a_network_that_changes_goes_point_to_point(comm, connect):
    if comm.size > 1:
        found = connect(changing(comm.size), Wires("persistent")).network.description
        assert found == "point to point"
    found = connect(changing(comm.size), Wires("auto", part=comm.rank)).network.description
    assert found == ("point to point" if comm.size > 1 else "no links")


def no_window(*_args, **_more):
    raise NotImplementedError("none here")


@pytest.mark.parametrize("reason", ["room", "window"])
def test_without_shared_memory_messages_are_sent_and_the_reason_is_told(
    comm, connect, monkeypatch, reason
):
    """One rank alone may have found it out."""
    if comm.rank == comm.size - 1 and reason == "room":
        monkeypatch.setattr(shared, "room", lambda: 1000)
    if reason == "window":
        monkeypatch.setattr(shared, "try_window", no_window)
    W = dense("ring", comm.size)
    gossip = connect(Weights(W, "test"), Wires("auto", largest=4 * LENGTH))
    gossip.average((message(comm.rank, 0),))
    if comm.size > 1:
        assert gossip.network.description == "persistent Neighbor_alltoallv"
        (note,) = gossip.network.notes
        assert "shared memory" in note
        assert ("1000 of" if reason == "room" else "none here") in note


@pytest.mark.parametrize("length", [1, 1000, LENGTH])
def test_a_window_takes_no_more_room_than_was_asked_for(comm, length):
    """The least of several trials: other jobs may take room meanwhile."""
    taken = []
    for _ in range(10):
        comm.Barrier()
        before = shared.room()
        comm.Barrier()
        window = shared.Window(comm, torch.float32, length)
        taken.append(before - shared.room())
        comm.Barrier()
        window.close()
    assert min(taken) <= shared.needed(comm, 4 * length)


@pytest.mark.parametrize("part", [lambda _: 0, lambda rank: rank // 2, lambda rank: rank % 2])
@pytest.mark.parametrize("lacking", [lambda comm: True, lambda comm: comm.rank == comm.size - 1])
@pytest.mark.parametrize(
    ("asked", "way"),
    [("auto", "persistent Neighbor_alltoallv"), ("shared", "point to point")],
)
def test_what_finds_no_room_goes_over_mpi_and_the_rest_stays(
    comm, connect, monkeypatch, part, lacking, asked, way
):
    """One node alone may be full, as one rank of it has found out."""
    W = uneven_ring(comm.size)
    gossip = connect(Weights(W, "test"), Wires(asked, part=part(comm.rank)))
    shares, before = gossip.network._shares, gossip.network.description
    assert gossip.network.notes == () or comm.size == 1
    if lacking(comm):
        monkeypatch.setattr(shared, "room", lambda: 100_000)
    found = []
    for round_ in range(5):
        for length in (50, LENGTH, 60):
            v = partial(message, round_=round_, length=length)
            (v_bar,) = gossip.average((v(comm.rank),))
            assert torch.equal(v_bar, averaged(W, comm.rank, v))
        found.append(gossip.network.notes)
    assert len(set(comm.allgather((found[-1], gossip.network.description)))) == 1
    assert found == [found[0]] * 5, "it is told once"
    if not shares:
        assert gossip.network.description == before
        return
    assert gossip.network.description == f"{before}; {way} where there is no room"
    (note,) = found[0]
    assert note.startswith(f"messages of {4 * LENGTH} bytes go over MPI within a node too: ")
    assert "room for 100000 of the" in note
    planned = {length: len(e._slots) for (length, _), e in gossip._exchanges.items()}
    assert planned == {50: shared.SLOTS, LENGTH: 1, 60: shared.SLOTS}


def test_over_links_that_change_what_finds_no_room_goes_point_to_point(comm, connect, monkeypatch):
    mixing = changing(comm.size)
    gossip = connect(mixing, Wires("auto"))
    monkeypatch.setattr(shared, "room", lambda: 0)
    for k in range(8):
        gossip.turn_to(k)
        (v_bar,) = gossip.average((message(comm.rank, k),))
        W = mixing.matrices[k % len(mixing.matrices)].toarray()
        assert torch.equal(v_bar, averaged(W, comm.rank, partial(message, round_=k)))
    if comm.size > 1:
        assert gossip.network.description == "shared memory; point to point where there is no room"


def test_what_finds_no_room_needs_no_library_of_mpi_4(comm, connect, monkeypatch):
    """One rank alone may have found out that it is none."""
    monkeypatch.setattr(network, "can_plan", lambda: comm.rank < comm.size - 1)
    W = uneven_ring(comm.size)
    gossip = connect(Weights(W, "test"), Wires("auto"))
    monkeypatch.setattr(shared, "room", lambda: 0)
    (v_bar,) = gossip.average((message(comm.rank, 0),))
    assert torch.equal(v_bar, averaged(W, comm.rank, partial(message, round_=0)))
    if comm.size > 1:
        found = gossip.network.description
        assert found == "shared memory; Neighbor_alltoallv where there is no room"
        first, second = gossip.network.notes
        assert "over MPI within a node too" in first
        assert "in every round" in second


def in_memory(tensor):
    """Return for every page of a tensor, but those at its ends, whether it takes memory."""
    libc, page = ctypes.CDLL(None), os.sysconf("SC_PAGE_SIZE")
    first = -(-tensor.data_ptr() // page)
    pages = (tensor.data_ptr() + tensor.nbytes) // page - first
    found = (ctypes.c_ubyte * pages)()
    assert libc.mincore(ctypes.c_void_p(first * page), ctypes.c_size_t(pages * page), found) == 0
    return [bool(byte & 1) for byte in found]


def test_a_window_takes_its_memory_at_once(comm):
    """What would only be taken later is still free in the eyes of the next one."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    window = shared.Window(node, torch.float32, LENGTH)
    for place in range(node.size):
        for slot in window.slots(place):
            assert all(in_memory(slot))
    node.Barrier()
    window.close()
    node.Free()


def test_without_persistent_collectives_there_is_one_in_every_round(comm, connect, monkeypatch):
    """One rank alone may have found it out."""
    monkeypatch.setattr(network, "can_plan", lambda: comm.rank < comm.size - 1)
    W = dense("ring", comm.size)
    gossip = connect(Weights(W, "test"), Wires("persistent"))
    gossip.average((message(comm.rank, 0),))
    if comm.size > 1:
        assert gossip.network.description == "Neighbor_alltoallv"
    assert "in every round" in gossip.network.notes[0]
    assert connect(Weights(W, "test"), Wires("p2p")).network.notes == ()
    within = connect(Weights(W, "test"), Wires("auto")).network
    assert len(within.notes) == (comm.size == 1)


class Lacking:
    """Stands in for a graph of a library of MPI-3."""

    def Neighbor_alltoallv_init(self, *_):
        raise NotImplementedError

    def Free(self):
        pass


def test_whether_collectives_can_be_planned_is_tried():
    assert messages.can_plan()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "_graph_of_nobody", Lacking)
        assert not messages.can_plan()


class Recorder(Queue):
    """Writes down what it is asked for."""

    def __init__(self):
        super().__init__()
        self.log = []

    def copy(self, to, from_):
        self.log.append("copy")
        super().copy(to, from_)

    def settle(self):
        self.log.append("settle")
        super().settle()


def record_starts(monkeypatch, log):
    start = Exchange.start

    def recorded(self, links):
        log.append("send")
        start(self, links)

    monkeypatch.setattr(Exchange, "start", recorded)


@pytest.mark.parametrize("direct", [False, True])
def test_a_device_is_settled_before_mpi_looks_and_after_what_came(comm, monkeypatch, direct):
    layer = Recorder()
    ring = Weights(dense("ring", comm.size), "ring")
    record_starts(monkeypatch, layer.log)
    connected = Network(comm, ring, Wires(layer=layer, direct=direct))
    exchange = connected.plan(torch.float32, 6)
    links = ring.links(comm.rank)
    layer.log.clear()
    for round_ in range(3):
        layer.copy(exchange.packed, torch.full((6,), 10.0 * round_ + comm.rank))  # queued
        exchange.start(links)
        exchange.finish()
        for j, arrived in zip(links.sources, exchange.arrived, strict=True):
            assert arrived.tolist() == [10.0 * round_ + j] * 6
    staged = ["copy", "copy", "settle", "send", *["copy"] * len(links.sources), "settle"]
    assert layer.log == 3 * (["copy", "settle", "send"] if direct else staged)
    exchange.close()
    connected.close()


def test_direct_buffers_must_be_there(comm, connect):
    """On one agent alone they are not."""
    layer = None if comm.rank == comm.size - 1 else Queue()
    with pytest.raises(UsageError, match=f"1 of {comm.size} agents compute on the CPU"):
        connect(Weights(dense("ring", comm.size), "ring"), Wires(layer=layer, direct=True))


def test_an_mpi_that_does_not_know_devices_is_never_given_their_buffers(comm, connect, monkeypatch):
    """On one agent alone it is such a one."""

    class Unknown(Queue):
        def known_to_mpi(self):
            return comm.rank < comm.size - 1

    monkeypatch.setattr(Exchange, "start", None)
    with pytest.raises(UsageError, match="does not say that it can read GPU buffers"):
        connect(Weights(dense("ring", comm.size), "ring"), Wires(layer=Unknown(), direct=True))


@pytest.mark.parametrize(
    ("answers", "known"),
    [
        ({}, False),
        ({"MPIX_Query_cuda_support": lambda: 0}, False),
        ({"MPIX_Query_cuda_support": lambda: 1}, True),
        ({"MPIX_Query_rocm_support": lambda: 1}, False),
    ],
)
def test_the_library_is_asked_whether_it_knows_devices(answers, known):
    assert says_yes(SimpleNamespace(**answers), ("cuda",)) == known


def test_this_library_answers():
    """Open MPI and MPICH have the query; the packaged ones were built without GPUs."""
    assert Cuda(torch.device("cuda")).known_to_mpi() in (True, False)
    assert hasattr(ctypes.CDLL(MPI.__file__), "MPIX_Query_cuda_support")


class Deaf(Queue):
    """A device whose memory MPI cannot reach although it says so."""

    def empty(self, length, dtype):
        return torch.zeros(length, dtype=dtype)

    def settle(self):
        self._waiting.clear()


def test_direct_buffers_are_tried_first(comm, connect):
    W = Weights(dense("ring", comm.size), "ring")
    connect(W, Wires(layer=Queue(), direct=True))
    if comm.size > 1:
        with pytest.raises(UsageError, match="gpu_direct"):
            connect(W, Wires(layer=Deaf(), direct=True))
