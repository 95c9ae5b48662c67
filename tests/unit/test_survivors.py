"""Whoever is lost, those who are left mix as the theory wants it, and as before where they can."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundsbo_mpi.topology import BUILDERS, SEQUENCES, Cycle, Weights
from sundsbo_mpi.topology.survivors import remaining

NETWORKS = {
    **{name: BUILDERS[name] for name in ("ring", "line", "star", "exponential", "complete")},
    "erdos-renyi": lambda n: BUILDERS["erdos-renyi"](n, seed=n),
    "one-peer": SEQUENCES["one-peer"],
    "random": lambda n: SEQUENCES["random"](max(n, 4), neighbours=2, neighbours_max=3, seed=1),
}


def linked(mixing, agents):
    """The graph of all links that ever were between some of the agents, without directions."""
    whole = nx.Graph(mixing.edges().tolist())
    whole.add_nodes_from(range(mixing.agents))
    return whole.subgraph(agents)


@st.composite
def losses(draw):
    """A network, and who is left of it."""
    mixing = NETWORKS[draw(st.sampled_from(sorted(NETWORKS)))](draw(st.integers(1, 16)))
    some = st.sets(st.integers(0, mixing.agents - 1), min_size=1)
    return mixing, sorted(draw(some))


@settings(deadline=None, max_examples=150)
@given(losses())
def test_what_is_left_is_doubly_stochastic_connected_and_contracting(loss):
    mixing, agents = loss
    W = remaining(mixing, agents).weights.matrix.toarray()
    assert W.shape == (len(agents), len(agents))
    assert (W >= 0).all()
    np.testing.assert_array_equal(W, W.T)
    np.testing.assert_allclose(W.sum(axis=1), 1, rtol=0, atol=1e-15 * len(agents))
    off_average = W - 1 / len(agents)
    rho = np.abs(np.linalg.eigvalsh(off_average)).max()
    assert rho < 1 - 1e-4
    assert remaining(mixing, agents).weights.rho == pytest.approx(rho, abs=1e-12)


@settings(deadline=None, max_examples=150)
@given(losses())
def test_links_are_those_that_were_and_the_fewest_that_connect_the_parts(loss):
    mixing, agents = loss
    weights, bridges = remaining(mixing, agents)
    before = linked(mixing, agents)
    after = {(agents[i], agents[j]) for i, j in weights.edges().tolist()}
    assert after == {*before.edges, *bridges} | {(j, i) for i, j in (*before.edges, *bridges)}
    assert all(i < j and not before.has_edge(i, j) for i, j in bridges)
    assert len(bridges) == nx.number_connected_components(before) - 1


@settings(deadline=None, max_examples=60)
@given(losses())
def test_weights_are_those_of_metropolis_and_hastings(loss):
    mixing, agents = loss
    weights = remaining(mixing, agents).weights
    degree = np.bincount(weights.edges()[:, 0], minlength=weights.agents)
    W = weights.matrix.toarray()
    for i, j in weights.edges().tolist():
        assert W[i, j] == 1 / (1 + max(degree[i], degree[j]))


def test_who_has_lost_nobody_keeps_all_links_and_the_order_of_losses_does_not_matter():
    ring = BUILDERS["ring"](7)
    assert remaining(ring, range(7)).bridges == ()
    assert remaining(ring, range(7)).weights.edges().tolist() == ring.edges().tolist()
    found = {remaining(ring, left).weights.sha256 for left in ([0, 2, 5], (0, 2, 5))}
    assert len(found) == 1


def test_bridges_go_where_there_are_the_fewest_links():
    # The path 0 - 1 - 2, the triangle 3 - 4 - 5 with the tail 6, and 8 alone; 7 held all together.
    pairs = [(0, 1), (1, 2), (3, 4), (4, 5), (3, 5), (5, 6), (7, 1), (7, 4), (7, 8)]
    W = np.zeros((9, 9))
    for i, j in pairs:
        W[i, j] = W[j, i] = 0.1
    W += np.diag(1 - W.sum(axis=1))
    found = remaining(Weights(W, "test"), [0, 1, 2, 3, 4, 5, 6, 8])
    assert found.bridges == ((0, 6), (3, 8))


def test_the_hub_of_a_star_is_replaced():
    weights, bridges = remaining(BUILDERS["star"](6), range(1, 6))
    assert bridges == ((1, 2), (1, 3), (1, 4), (1, 5))
    assert weights.rho == pytest.approx(BUILDERS["star"](5).rho)


def test_a_link_in_one_direction_becomes_one_in_both():
    """Agents 0 -> 1 -> 2 -> 3 -> 0; without 3 there is no way back from 2 to 0."""
    onward = (np.eye(4) + np.roll(np.eye(4), 1, axis=0)) / 2
    weights, bridges = remaining(Cycle((onward,), "test"), [0, 1, 2])
    assert bridges == ()
    assert weights.edges().tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]


def test_one_agent_is_left_to_itself():
    weights, bridges = remaining(BUILDERS["ring"](5), [3])
    assert weights.matrix.toarray().tolist() == [[1.0]]
    assert (weights.rho, bridges) == (0.0, ())


def test_weights_that_do_not_fit_a_method_are_made_lazy():
    """Four agents in a ring have the smallest eigenvalue -1/3, which is too small for ED."""
    square = BUILDERS["exponential"](8), [0, 1, 2, 3]
    for mixing, agents in (square, (BUILDERS["ring"](4), [0, 1, 2, 3])):
        own = remaining(mixing, agents, lambda smallest: smallest > -1).weights
        fitting = remaining(mixing, agents, lambda smallest: smallest > -1 / 3 + 1e-9).weights
        halved = (np.eye(4) + own.matrix.toarray()) / 2
        np.testing.assert_array_equal(fitting.matrix.toarray(), halved)
        assert "4 of" in fitting.name


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_every_single_loss_of_every_network_can_be_borne(name):
    mixing = NETWORKS[name](9)
    for agents in itertools.combinations(range(9), 8):
        assert remaining(mixing, agents).weights.rho < 1
