"""Agents are divided among nodes exactly, reproducibly, and never worse than in their order."""

import itertools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundsbo_mpi.comm.seating import assigned
from sundsbo_mpi.topology import BUILDERS, SEQUENCES, Weights
from sundsbo_mpi.topology.exchanging import refined, refined_halves
from sundsbo_mpi.topology.grouping import crossing, grouped
from sundsbo_mpi.topology.links import adjacency, metropolis


def nodes_of_agents(agents, nodes):
    """Turn the agent of every rank and the node of every rank into the node of every agent."""
    found = np.empty(len(nodes), dtype=int)
    found[list(agents)] = nodes
    return found


def counted(weights, node):
    """Count links between nodes entry by entry."""
    linked = {(i, j) for W in weights.matrices for i, j in np.argwhere(W.toarray().T > 0).tolist()}
    cut = sum(node[i] != node[j] for i, j in linked if i != j)
    return cut // 2 if weights.symmetric else cut


@st.composite
def networks(draw):
    n = draw(st.integers(2, 14))
    name = draw(st.sampled_from(["ring", "star", "exponential", "erdos-renyi", "one-peer"]))
    seed = {"seed": draw(st.integers(0, 9))} if name == "erdos-renyi" else {}
    return (BUILDERS | SEQUENCES)[name](n, **seed)


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_a_division_keeps_sizes_and_is_never_worse_than_the_order(data):
    weights = data.draw(networks())
    nodes = data.draw(st.lists(st.integers(0, 3), min_size=weights.agents, max_size=weights.agents))
    agents = grouped(weights, nodes)
    assert sorted(agents) == list(range(weights.agents))
    assert agents[0] == 0
    assert agents == grouped(weights, nodes)
    after, before = crossing(weights, nodes_of_agents(agents, nodes)), crossing(weights, nodes)
    assert before == counted(weights, nodes)
    assert after == counted(weights, nodes_of_agents(agents, nodes))
    assert after < before or agents == tuple(range(weights.agents))


KNOWN = [
    ("ring", 12, 3, {}, 3),
    ("ring", 13, 2, {}, 2),
    ("line", 30, 4, {}, 3),
    ("grid", 64, 4, {}, 16),
    ("torus", 64, 4, {}, 32),
    ("hypercube", 32, 4, {}, 32),
    ("star", 9, 3, {}, 6),
]


@pytest.mark.parametrize(("name", "n", "count", "options", "least"), KNOWN)
@pytest.mark.parametrize("dealt", ["blocks", "in turn"])
def test_known_graphs_are_cut_where_they_are_thin(name, n, count, options, least, dealt):
    weights = BUILDERS[name](n, **options)
    nodes = np.arange(n) * count // n if dealt == "blocks" else np.arange(n) % count
    agents = grouped(weights, nodes.tolist())
    assert crossing(weights, nodes_of_agents(agents, nodes)) == least


def test_two_crowds_in_any_order_are_told_apart():
    rng = np.random.default_rng(3)
    order = np.concatenate([[0], rng.permutation(np.arange(1, 40))])
    within = [(i, j) for i, j in itertools.combinations(range(40), 2) if (i < 15) == (j < 15)]
    graph = adjacency(40, order[np.array([*within, (0, 39), (7, 20)])])
    left = np.arange(40) < 15
    cut = refined_halves(graph, left)
    assert cut.sum() == 15
    assert set(np.flatnonzero(cut)) == set(order[:15])
    halves = refined(graph, left.astype(int))
    assert set(np.flatnonzero(halves == 1)) == set(order[:15])


@pytest.mark.parametrize("sizes", [(2, 9), (9, 2), (5, 6), (1, 3, 7)])
@pytest.mark.parametrize("home", [0, 1])
def test_agent_0_stays_whatever_the_sizes(sizes, home):
    """On a line of agents in random order, of which the parts are stretches, at least cut."""
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(sum(sizes))
        weights = Weights(metropolis(adjacency(sum(sizes), np.array(list(pairwise(order))))), "")
        nodes = np.repeat(np.arange(len(sizes)), sizes)
        nodes = np.concatenate([[home], np.delete(nodes, np.flatnonzero(nodes == home)[0])])
        agents = grouped(weights, nodes)
        assert agents[0] == 0
        ends = int(np.flatnonzero(order == 0)[0]) + 1
        size = sizes[home]
        reachable = ends <= size or len(order) - ends < size
        least = len(sizes) - 1 if len(sizes) == 2 and reachable else 2 * (len(sizes) - 1)
        assert crossing(weights, nodes_of_agents(agents, nodes)) <= least


def test_what_is_said():
    ring, in_turn = BUILDERS["ring"](6), [0, 1, 0, 1, 0, 1]
    order = tuple(range(6))
    assert assigned(ring, [0] * 6, place=False) == (order, None)
    said = "placement: there is one node, which no link leaves"
    assert assigned(ring, [0] * 6, place=True) == (order, said)
    agents, said = assigned(ring, in_turn, place=False)
    assert agents == order
    assert said == "6 of 6 links cross nodes; --place looks for a better placement"
    agents, said = assigned(ring, in_turn, place=True)
    assert agents != order
    assert said == "placement: 2 of 6 links cross nodes instead of 6"
    agents, said = assigned(ring, [0, 0, 0, 1, 1, 1], place=True)
    assert (agents, said) == (order, "placement: 2 of 6 links cross nodes as without --place")
    redrawn = SEQUENCES["random"](6, neighbours=2)
    assert assigned(redrawn, in_turn, place=False) == (order, None)
    agents, said = assigned(redrawn, in_turn, place=True)
    assert agents == order
    assert "no placement is better" in said


@pytest.mark.parametrize("name", ["torus", "random-regular"])
def test_thousands_of_agents_are_divided_too(name):
    weights = BUILDERS[name](2500)
    nodes = np.arange(2500) // 50
    agents = grouped(weights, nodes)
    assert sorted(agents) == list(range(2500))
    after = crossing(weights, nodes_of_agents(agents, nodes))
    assert after < 0.6 * crossing(weights, nodes)
