"""What a bench times really happens, on any number of ranks and on pretended nodes."""

import dataclasses
import json
import os
from contextlib import ExitStack

import numpy as np
import pytest
import torch

from sundsbo_mpi.algorithms.messages import Sizes
from sundsbo_mpi.bench import cases, core_ranges, measuring, timing
from sundsbo_mpi.bench.cases import DIRECT, EXCHANGE, HOST, ROUND, STAGED, Ground, averaging
from sundsbo_mpi.bench.fitting import fit_links
from sundsbo_mpi.bench.measuring import measure_iterations, measure_pairs, measure_series
from sundsbo_mpi.bench.model import OTHER, SAME, load
from sundsbo_mpi.bench.parts import ALL, parts
from sundsbo_mpi.bench.surroundings import about, ranks
from sundsbo_mpi.bench.timing import Case, interleaved
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm import node
from sundsbo_mpi.comm.bare import NOBODY, BareExchange, BarePair, BareSum
from sundsbo_mpi.comm.launcher import find_launcher
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports import TRANSPORTS, shared
from sundsbo_mpi.errors import AgreedError
from sundsbo_mpi.topology import BUILDERS, SEQUENCES

SIZES = (4, 1024)
REPEATS = 2
ONE_PEER = next(name for name in SEQUENCES if "peer" in name)


@pytest.fixture(autouse=True)
def _short_batches(monkeypatch):
    monkeypatch.setattr(timing, "LARGEST_BATCH", 2)


@pytest.fixture
def ground(comm):
    """Where the ranks are, every second one on a pretended second node."""
    local = dataclasses.replace(
        node.local(comm), nodes=tuple(rank % 2 for rank in range(comm.size))
    )
    return Ground(local, Tally(comm), {HOST: torch.device("cpu")}, REPEATS)


def networks_of(ground, name="complete"):
    weights = (BUILDERS | SEQUENCES)[name](ground.tally.agents)
    return parts(weights, np.array(ground.local.nodes))


@pytest.mark.parametrize("name", ["complete", ONE_PEER])
def test_every_transport_is_timed_for_every_size_and_class_of_links(ground, name):
    networks = networks_of(ground, name)
    found = measure_series(ground, networks, SIZES)
    assert (found is None) == (ground.tally.agent > 0)
    if found is None:
        return
    n = ground.tally.agents
    assert {key.what for key in found if key.links == "none"} == {"allreduce", "memcpy", "mix"}
    for series in found.values():
        assert series.median.shape == series.p95.shape == (len(SIZES), n)
        assert (series.median > 0).all()
        assert (series.p95 >= series.median).all()
        assert (series.slowest >= series.median.max(axis=1) * (1 - 1e-12)).all()
    for links, part in networks.items():
        rounds = {key.transport: key for key in found if (key.what, key.links) == (ROUND, links)}
        assert set(rounds) == (set(TRANSPORTS) if len(part.edges()) else set())
        for key in rounds.values():
            exchange = found[key._replace(what=EXCHANGE)]
            assert (exchange.slowest < found[key].slowest).all()
        bare = {k.transport for k in found if (k.what, k.links) == (EXCHANGE, links)} - set(rounds)
        assert bare == ({"mpi-blocking", "mpi-nonblocking"} if rounds else set())


class Memory:
    """Host memory that stands in for a device's."""

    def empty(self, length, dtype):
        return torch.empty(length, dtype=dtype)

    host = empty

    def copy(self, to, from_):
        to.copy_(from_)

    def settle(self):
        pass

    def known_to_mpi(self):
        return True


def test_device_buffers_are_staged_by_every_transport_and_direct_by_one(ground, monkeypatch):
    monkeypatch.setattr(cases, "layer_of", lambda _device: Memory())
    devices = dict.fromkeys((HOST, STAGED, DIRECT), ground.devices[HOST])
    networks = {ALL: networks_of(ground, "ring")[ALL]}
    found = measure_series(dataclasses.replace(ground, devices=devices), networks, (4,))
    if found is None:
        return
    rounds = {(key.transport, key.buffers) for key in found if key.what == ROUND}
    expected = {(t, b) for t in TRANSPORTS for b in (HOST, STAGED)} | {("p2p", DIRECT)}
    assert rounds == (expected if ground.tally.agents > 1 else set())
    assert {key.buffers for key in found if key.what == "mix"} == {HOST, STAGED}


def test_what_one_transport_refuses_is_refused_on_all_ranks(ground):
    direct = dataclasses.replace(ground, devices={DIRECT: ground.devices[HOST]})
    with ExitStack() as to_close, pytest.raises(AgreedError, match="gpu_direct"):
        averaging(direct, networks_of(ground, "ring")[ALL], [1], to_close)


def test_each_class_gets_its_costs(ground):
    networks, nodes = networks_of(ground), np.array(ground.local.nodes)
    found = measure_series(ground, networks, SIZES)
    if found is None:
        return
    loads = {name: load(part.edges(), nodes) for name, part in networks.items()}
    links = fit_links(found, np.array(SIZES), loads)
    expected = {1: set(), 2: {OTHER}}.get(ground.tally.agents, {SAME, OTHER})
    assert set(links) == ({(t, HOST) for t in TRANSPORTS} if expected else set())
    for fits in links.values():
        assert set(fits) == expected
        assert all(f.alpha >= 0 and f.beta >= 0 and f.alpha + f.beta > 0 for f in fits.values())


def test_iterations_are_timed_by_transport(ground):
    messages = [(8,), (8, 8), (16,)]
    found = measure_iterations(ground, networks_of(ground, "ring")[ALL], messages)
    if ground.tally.agent > 0:
        assert found is None
        return
    assert set(found) == {(t, HOST) for t in TRANSPORTS}
    for seconds in found.values():
        assert seconds.shape == (3,)
        assert (seconds > 0).all()


def test_messages_of_one_length_are_one_vector(ground, monkeypatch):
    made, ones = [], Ground.ones
    monkeypatch.setattr(Ground, "ones", lambda *of: made.append(of[1:]) or ones(*of))
    measure_iterations(ground, networks_of(ground, "ring")[ALL], [(8, 16, 8, 8)])
    assert sorted(made) == [(HOST, 2), (HOST, 4)]


def test_every_pair_is_timed(ground):
    edges = networks_of(ground, "complete")[ALL].edges()
    found = measure_pairs(ground, edges, SIZES)
    if ground.tally.agent > 0:
        assert found is None
        return
    n = ground.tally.agents
    pairs = list(zip(found["first"], found["second"], strict=True))
    assert pairs == [(i, j) for i in range(n) for j in range(i + 1, n)]
    assert (found["latency_s"] > 0).all()
    assert (found["bandwidth"] > 0).all()


def test_pairs_between_nodes_are_timed_while_no_other_is_at_their_nodes(ground, monkeypatch):
    """Whom every rank swaps with, turn after turn."""
    met = []
    monkeypatch.setattr(
        measuring, "BarePair", lambda comm, *of: met.append(of) or BarePair(comm, *of)
    )
    measure_pairs(ground, networks_of(ground, "complete")[ALL].edges(), SIZES)
    n, nodes = ground.tally.agents, ground.local.nodes
    everyone = ground.local.comm.allgather([partner for partner, _ in met])
    timed = [0, 0]
    for partners in zip(*everyone, strict=True):
        pairs = [(i, j) for i, j in enumerate(partners) if j != NOBODY and i < j]
        assert all(partners[j] == i for i, j in pairs)
        far = [pair for pair in pairs if nodes[pair[0]] != nodes[pair[1]]]
        assert len(far) <= 1  # as there are two nodes
        timed = [timed[0] + len(far), timed[1] + len(pairs)]
    assert timed == [2 * (n // 2) * (n - n // 2), n * (n - 1)]  # with messages of two sizes


def test_the_cases_take_turns_on_all_ranks(comm):
    called = []
    listed = {name: Case(lambda name=name: called.append(name)) for name in "abc"}
    times = interleaved(listed, 3, Tally(comm))
    assert list(times) == list("abc")
    for own in times.values():
        assert (own.whole > 0).all()
        assert (own.exchange == 0).all()
    # What is done several times in a row counts once; the warm-up goes through them in order.
    turns = "".join(
        name for name, before in zip(called, [None, *called], strict=False) if name != before
    )
    assert turns == "abc" + "abc" + "ba" + "bc"
    assert comm.allgather(called) == [called] * comm.size


def test_bare_collectives_bring_the_neighbours_numbers(comm):
    rank, n = comm.rank, comm.size
    source, destination = (rank - 1) % n, (rank + 1) % n
    exchange = BareExchange(comm, [source], [destination], 3)
    for go in (exchange.blocking, exchange.nonblocking):
        exchange.sent[:] = rank
        exchange.received[:] = -1
        go()
        assert exchange.received.tolist() == [source] * 3
    exchange.close()
    summed = BareSum(comm, 2)
    summed.own[:] = rank
    summed.add()
    assert summed.sum.tolist() == [n * (n - 1) / 2] * 2


def test_a_bare_pair_swaps_and_a_lone_agent_does_nothing(comm):
    partner = comm.rank ^ 1
    pair = BarePair(comm, partner if partner < comm.size else NOBODY, 2)
    pair.sent[:] = comm.rank
    pair.received[:] = -1
    pair.swap()
    assert pair.received.tolist() == [partner if partner < comm.size else -1] * 2


def test_the_routes_that_were_timed_are_told(ground, monkeypatch):
    """Shared memory has room for the short messages only; on a device it is not tried by auto."""
    monkeypatch.setattr(
        cases, "layer_of", lambda device: None if device.type == "cpu" else Memory()
    )
    monkeypatch.setattr(shared, "room", lambda: shared.needed(ground.local.comm, 4))
    monkeypatch.setattr(Ground, "ones", lambda _, __, length: torch.ones(length))
    monkeypatch.setattr(Ground, "clock", lambda *_: Clock())
    devices = {HOST: torch.device("cpu"), STAGED: torch.device("meta")}
    ground = dataclasses.replace(ground, devices=devices)
    networks = networks_of(ground, "ring")
    measure_series(ground, networks, (4, 65536))
    short = dict(ground.carried.routes())
    measure_iterations(ground, networks[ALL], [(65536,)])
    if ground.tally.agents == 1:
        assert short == {}
        assert set(ground.carried.routes().values()) == {"no links"}
        return
    assert set(short) == {name for t in TRANSPORTS for name in (t, f"{t}, {STAGED}")}
    assert short["auto"] == "shared memory or persistent Neighbor_alltoallv"
    assert short["shared"] == short[f"shared, {STAGED}"] == "shared memory or point to point"
    assert short[f"auto, {STAGED}"] == short["persistent"] == "persistent Neighbor_alltoallv"
    assert short == ground.carried.routes()
    assert any("no shared memory" in note for note in ground.carried.notes)


def test_what_surrounds_a_bench_is_told(ground, monkeypatch):
    monkeypatch.setenv("UCX_TLS", "tcp")
    monkeypatch.setenv("MY_SECRET", "x")
    monkeypatch.setenv("OMPI_MCA_initial_wdir", "/somewhere")
    weights = BUILDERS["ring"](ground.tally.agents)
    facts = about(weights, REPEATS, Sizes(1, 2), {"auto": "wire"})
    assert facts["topology_sha256"] == weights.sha256
    assert facts["launcher"] == find_launcher().name
    told = json.loads(facts["environment"])
    assert told["UCX_TLS"] == "tcp"
    assert not told.keys() & {"MY_SECRET", "OMPI_MCA_initial_wdir"}
    assert json.loads(facts["transports"]) == {"auto": "wire"}
    assert (facts["repeats"], facts["payload_x"], facts["payload_y"]) == (REPEATS, 1, 2)
    assert facts["mpi_library"]
    where = ranks(ground)
    assert (where is None) == (ground.tally.agent > 0)
    if where is not None:
        assert where["node"].tolist() == [rank % 2 for rank in range(ground.tally.agents)]
        assert set(where["device"]) == {"cpu"}
        assert set(where["node_cores"]) == {os.cpu_count()}
        own = core_ranges.written(ground.local.cores[ground.local.rank])
        assert where["binding"].tolist()[0] == own
