"""The costs of links: fitted from synthetic rounds, and put together by hand."""

import bench
import numpy as np
import pytest
from lockstep import Lockstep
from sparse_only import no_dense_matrix

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.algorithms.base import MethodOptions
from sundsbo_mpi.algorithms.messages import Sizes, message_bytes
from sundsbo_mpi.algorithms.sending import sending
from sundsbo_mpi.bench.cases import ROUND
from sundsbo_mpi.bench.fitting import (
    LARGEST_CHECKED,
    check,
    checked_messages,
    fit_links,
    unchecked,
)
from sundsbo_mpi.bench.model import CLASSES, OTHER, SAME, Fit, Model, fit, load
from sundsbo_mpi.bench.parts import ALL, parts
from sundsbo_mpi.bench.prediction import Asked, decentralised, placed, predict, require_measured
from sundsbo_mpi.bench.record import Key, Sent, Series
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import BUILDERS, SEQUENCES

SIZES = np.array([4, 1024, 65536, 4194304])
ALPHA, BETA = 2e-6, 3e-10
NEAR, FAR = Fit(1e-6, 1e-10, 0.0), Fit(5e-6, 8e-10, 0.0)


def edges(*pairs):
    return np.array([(i, j) for pair in pairs for i, j in (pair, pair[::-1])])


def star(leaves):
    return edges(*((0, leaf) for leaf in range(1, leaves + 1)))


def test_the_fit_recovers_what_the_rounds_were_made_with():
    found = fit(3, SIZES, 3 * (ALPHA + BETA * SIZES))
    np.testing.assert_allclose(found, (ALPHA, BETA, 0), rtol=1e-9, atol=1e-9)


def test_neither_cost_is_negative():
    falling = fit(2, SIZES, np.array([4e-6, 3e-6, 2e-6, 1e-6]))
    assert (falling.beta, falling.alpha > 0, falling.error > 0.5) == (0, True, True)
    steep = fit(1, SIZES, 1e-9 * SIZES.astype(float))
    np.testing.assert_allclose(steep, (0, 1e-9, 0), atol=1e-12)


def test_the_error_is_the_worst_one():
    exact = 2 * (ALPHA + BETA * SIZES)
    found = fit(2, SIZES, exact * [1, 1, 1, 1.3])
    predicted = 2 * (found.alpha + found.beta * SIZES)
    assert found.error == pytest.approx(np.abs(predicted / (exact * [1, 1, 1, 1.3]) - 1).max())


@pytest.mark.parametrize("times", [(1e-6, 1.1e-6), (1e-6, 5e-3), (2e-6, 1e-6), (1e-9, 2e-6)])
def test_two_sizes_have_an_error_only_where_a_cost_would_be_negative(times):
    found = fit(2, np.array([4, 1024]), np.array(times))
    slope = (times[1] - times[0]) / (1024 - 4)
    if slope >= 0 and times[0] >= 4 * slope:
        assert min(found.alpha, found.beta) > 0
        assert found.error == pytest.approx(0, abs=1e-9)
    else:
        assert min(found.alpha, found.beta) == 0
        assert found.error > 0.1


def test_a_star_by_hand():
    """The centre deals with three neighbours, on its own node and on another."""
    model = Model({SAME: NEAR, OTHER: FAR}, ranks_per_node=2)
    of = load(star(3), np.array([0, 0, 1, 1]))
    b = 1000
    near, far = 1e-6 + 1e-10 * b, 5e-6 + 8e-10 * b
    np.testing.assert_allclose(model.round_seconds(of, b), [near + 2 * far, near, far, far])
    np.testing.assert_allclose(model.iteration_seconds(of, [b, b]), 2 * (near + 2 * far))
    assert of.used == CLASSES


def test_a_ring_by_hand():
    model = Model({SAME: NEAR}, ranks_per_node=5)
    of = load(edges(*((i, (i + 1) % 5) for i in range(5))), np.zeros(5))
    np.testing.assert_allclose(model.round_seconds(of, 2000), np.full(5, 2 * (1e-6 + 2e-7)))
    assert of.used == (SAME,)


def test_more_agents_on_a_node_share_what_it_can_move():
    """The six agents of a node, each with a neighbour elsewhere; fitted with two on a node."""
    model = Model({OTHER: Fit(0.0, 1e-9, 0.0)}, ranks_per_node=2)
    of = load(edges(*((i, i + 6) for i in range(6))), np.repeat([0, 1], 6))
    np.testing.assert_allclose(model.round_seconds(of, 1e6), np.full(12, 6 / 2 * 1e-3))
    fewer = load(edges((0, 2), (1, 3)), np.array([7, 7, 9, 9]))
    np.testing.assert_allclose(model.round_seconds(fewer, 1e6), np.full(4, 1e-3))


def test_whoever_receives_more_than_it_sends_is_busy_with_that():
    of = load(np.array([(1, 0), (2, 0), (0, 1)]), np.zeros(3))
    assert of.messages[0].tolist() == [2, 1, 1]
    assert of.sent[0].tolist() == [1, 1, 1]


def test_no_links_cost_nothing():
    of = load(np.empty((0, 2), dtype=int), np.zeros(1))
    assert Model({}, 1).iteration_seconds(of, [4, 8]) == 0.0


def fitted(model, networks):
    """Fit the rounds that a model predicts for some networks."""
    loads = {name: load(part.edges(), NODES) for name, part in networks.items()}
    series = {}
    for name, of in loads.items():
        rounds = np.stack([model.round_seconds(of, b) for b in SIZES])
        key = Key(ROUND, "auto", "host", name)
        series[key] = Series(rounds, rounds, rounds.max(axis=1))
        series[key._replace(what="exchange")] = Series(rounds, rounds, 0.5 * rounds.max(axis=1))
    return loads, fit_links(series, SIZES, loads)


NODES = np.array([0, 0, 0, 1, 1, 1])


def test_each_class_of_links_is_fitted_to_its_own_rounds_and_their_sum_is_checked():
    model = Model({SAME: NEAR, OTHER: FAR}, ranks_per_node=3)
    networks = parts(BUILDERS["complete"](6), NODES)
    loads, links = fitted(model, networks)
    found = Model(links["auto", "host"], ranks_per_node=3)
    for kind in CLASSES:
        np.testing.assert_allclose(found.links[kind], model.links[kind], rtol=1e-6, atol=1e-8)
    messages = list(checked_messages(Sizes(10, 20)))
    measured = np.array([model.iteration_seconds(loads[ALL], sizes) for sizes in messages])
    result = check({("auto", "host"): found}, {("auto", "host"): measured}, loads[ALL], messages)
    np.testing.assert_allclose(result["auto", "host"].predicted, measured, rtol=1e-6)


def test_links_of_one_class_are_fitted_to_the_whole_network():
    networks = parts(BUILDERS["ring"](6), np.zeros(6))
    assert list(networks) == [ALL]
    model = Model({SAME: NEAR, OTHER: FAR}, ranks_per_node=6)
    loads = {ALL: load(networks[ALL].edges(), np.zeros(6))}
    rounds = np.stack([model.round_seconds(loads[ALL], b) for b in SIZES])
    series = {Key(ROUND, "p2p", "host", ALL): Series(rounds, rounds, rounds.max(axis=1))}
    ((kind, found),) = fit_links(series, SIZES, loads)["p2p", "host"].items()
    assert kind == SAME
    np.testing.assert_allclose(found, NEAR, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["ring", "complete", "exponential", "star"])
def test_the_parts_of_a_network_have_its_links_and_stay_doubly_stochastic(name):
    weights = BUILDERS[name](6)
    found = parts(weights, NODES)
    assert list(found) == [ALL, SAME, OTHER]
    both = np.concatenate([found[SAME].edges(), found[OTHER].edges()])
    np.testing.assert_array_equal(np.unique(both, axis=0), weights.edges())
    for part in found.values():
        for axis in (0, 1):
            np.testing.assert_allclose(part.at(3).sum(axis=axis), 1, atol=1e-12)
    for kind, together in ((SAME, True), (OTHER, False)):
        i, j = found[kind].edges().T
        assert ((NODES[i] == NODES[j]) == together).all()
        of_agent = found[kind].links(0)
        assert of_agent.own == pytest.approx(1 - sum(of_agent.sources.values()))


def test_a_directed_part_is_heard_by_those_it_names():
    one_peer = next(name for name in SEQUENCES if "peer" in name)
    part = parts(SEQUENCES[one_peer](6), NODES)[ALL]
    W = part.at(0).toarray()
    for i in range(6):
        assert set(part.links(i).destinations) == set(np.flatnonzero(W[:, i])) - {i}


class Recording(Lockstep):
    """Keeps the bytes of every message."""

    def exchange(self, outgoing):
        self.messages.append(sum(v.nbytes for v in outgoing[0].tensors))
        return super().exchange(outgoing)


FORMS = [
    {},
    {"gossip_steps": 2},
    {"compressor": "quantiser", "block": 4},
    {"wire": "bf16"},
    {"private": True},
    {"private": True, "compressor": "quantiser", "gossip_steps": 2},
]


@pytest.mark.parametrize("name", decentralised())
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_messages_are_those_that_agents_send(name, form):
    if "private" in form and name in ("dsbo", "gossip-dsbo", "d-psgd", "gnsd"):
        form = {k: v for k, v in form.items() if k != "private"}
    d_x, d_y, iterations = 2, 3, 2
    tasks = [bench.Merged(agent=i, agents=3, seed=bench.SEED, d_x=d_x, d_y=d_y) for i in range(3)]
    algorithm = sending(by_default(METHODS[name]), MethodOptions(**form), agents=3, seed=0)
    Recording.messages = []
    run = Recording(algorithm, tasks, bench.ring(3, 0.5)).run(iterations)
    itemsize = tasks[0].start()[0].element_size()
    sent = message_bytes(algorithm, Sizes(d_x, d_y, itemsize))
    assert run.messages == list(sent) * iterations
    assert len(sent) == algorithm.rounds


def test_every_method_is_checked_beside_those_that_send_the_same():
    messages = checked_messages(Sizes(10, 20))
    assert sorted(name for names in messages.values() for name in names) == sorted(decentralised())
    for sent, names in messages.items():
        for name in names:
            assert message_bytes(by_default(METHODS[name]), Sizes(10, 20)) == sent
    assert {"sun-dsbo-se", "sun-dsbo-dgd", "sun-dsbo-extra", "sun-dsbo-ed"} <= set(messages[200,])
    assert "sun-dsbo-gt" in messages[200, 200]
    assert {"sun-dsbo-semi-gt", "sun-dsbo-non-atc-gt"} <= set(messages[400,])


def test_where_all_methods_send_too_much_none_is_checked():
    assert checked_messages(Sizes(10**8, 10**8)) == {}
    assert unchecked([]) == list(decentralised())
    assert check({("auto", "host"): Model({SAME: NEAR}, 2)}, {}, load(star(2), NODES[:3]), []) == {}


def test_a_method_that_is_new_in_the_table_is_checked(monkeypatch):
    monkeypatch.setitem(METHODS, "another", METHODS["sun-dsbo-gt"])
    assert checked_messages(Sizes(10, 20))[200, 200][-1] == "another"


@pytest.mark.parametrize(
    ("sizes", "too_large"),
    [
        (Sizes(50_000, 238_510), {"dsbo", "gossip-dsbo"}),  # which cannot run
        (Sizes(10, 5_000), {"gossip-dsbo"}),  # 500 MB
        (Sizes(800, 10_000), {"dsbo", "gossip-dsbo"}),  # 320 MB in rounds of at most 64
    ],
)
def test_methods_with_messages_that_are_too_large_are_named(sizes, too_large):
    messages = checked_messages(sizes)
    assert max(sum(sent) for sent in messages) <= LARGEST_CHECKED
    assert set(unchecked([Sent.of(sent, names) for sent, names in messages.items()])) == too_large


def test_a_network_is_predicted_by_hand():
    """Four agents on two nodes; the two in the middle of the ring's halves are equally busy."""
    model = Model({SAME: NEAR, OTHER: FAR}, ranks_per_node=2)
    network = placed(BUILDERS["ring"](4), 2)
    asked = Asked(["sun-dsbo-se", "sun-dsbo-gt"], Sizes(100, 50), 0.5)
    (se, gt) = predict(model, network, asked)
    b = 4 * (100 + 50 + 50)
    one_round = 1e-6 + 1e-10 * b + 5e-6 + 8e-10 * b
    assert se.exchange == pytest.approx(one_round)
    assert gt.exchange == pytest.approx(2 * one_round)
    assert se.iteration == pytest.approx(0.5 + one_round)
    assert (se.rounds, gt.rounds, se.vectors, gt.vectors) == (1, 2, 3, 6)
    assert (se.bytes_most, se.bytes_all, se.bytes_between) == (2 * b, 8 * b, 4 * b)
    assert gt.bytes_all == 2 * se.bytes_all
    assert (se.ranks_per_node, se.shortest, se.longest, gt.shortest, gt.longest) == (2, b, b, b, b)


def test_a_network_that_changes_is_predicted_on_average():
    model = Model({SAME: NEAR, OTHER: FAR}, ranks_per_node=1)
    one_peer = next(name for name in SEQUENCES if "peer" in name)
    network = placed(SEQUENCES[one_peer](8), 1)
    assert len(network.loads) == 3
    (se,) = predict(model, network, Asked(["sun-dsbo-se"], Sizes(10, 10)))
    assert se.bytes_most == 4 * 30  # one peer in every round
    assert se.exchange == pytest.approx(5e-6 + 8e-10 * 120)


def test_a_problem_that_is_too_large_for_a_method_is_said_to_be():
    network = placed(BUILDERS["ring"](4), 4)
    (refused,) = predict(Model({SAME: NEAR}, 4), network, Asked(["dsbo"], Sizes(10**6, 10**6)))
    assert refused.method == "dsbo"
    assert "GiB" in refused.reason


@pytest.mark.parametrize(
    ("measured", "ranks_per_node", "words"),
    [
        ({SAME: NEAR}, 2, ("4 agents with 2 to a node", "other node", "--ranks-per-node 4")),
        ({OTHER: FAR}, 2, ("same node", "--ranks-per-node 1")),
    ],
)
def test_links_that_were_not_measured_are_refused(measured, ranks_per_node, words):
    network = placed(BUILDERS["ring"](4), ranks_per_node)
    with pytest.raises(UsageError) as caught:
        require_measured(Model(measured, 2), network)
    for word in words:
        assert word in str(caught.value)
    require_measured(Model({SAME: NEAR, OTHER: FAR}, 2), network)


def test_ten_thousand_agents_need_no_dense_matrix():
    model = Model({SAME: NEAR, OTHER: FAR}, ranks_per_node=64)
    with no_dense_matrix(10_000):
        network = placed(BUILDERS["torus"](10_000), 64)
        (gt,) = predict(model, network, Asked(["sun-dsbo-gt"], Sizes(1000, 1000)))
    assert gt.bytes_all == 4 * 10_000 * 2 * 4 * 3000
