"""Which pairs of neighbours are timed at the same time."""

import numpy as np
import pytest

from sundsbo_mpi.bench.pairing import pairs_of, turns
from sundsbo_mpi.topology import BUILDERS

SEATS = {
    "one node": lambda n: np.zeros(n, dtype=int),
    "blocks": lambda n: np.arange(n) // 4,
    "in turn": lambda n: 5 * (np.arange(n) % 3),
    "by chance": lambda n: np.random.default_rng(n).integers(0, 4, n),
    "a node each": np.arange,
}
CASES = [
    pytest.param(pairs_of(BUILDERS[name](agents).edges()), seat(agents), id=f"{name}, {seats}")
    for name, agents in (("star", 7), ("ring", 5), ("ring", 16), ("complete", 9), ("torus", 12))
    for seats, seat in SEATS.items()
]


def crossing(pairs, nodes):
    """Return which of the pairs are of two nodes."""
    first, second = nodes[pairs].T
    return first != second


def most(pairs):
    """Return how often the number that is there most often is there."""
    return np.bincount(pairs.ravel()).max(initial=0)


@pytest.mark.parametrize(("pairs", "nodes"), CASES)
def test_pairs_of_a_turn_have_no_agent_in_common(pairs, nodes):
    turn_of = turns(pairs, nodes)
    assert turn_of.shape == (len(pairs),)  # every pair has its one turn
    for turn in range(turn_of.max() + 1):
        assert most(pairs[turn_of == turn]) == 1  # also: no turn is empty


@pytest.mark.parametrize(("pairs", "nodes"), CASES)
def test_crossing_pairs_of_a_turn_have_no_node_in_common(pairs, nodes):
    turn_of = turns(pairs, nodes)
    for turn in range(turn_of.max() + 1):
        together = pairs[turn_of == turn]
        assert most(nodes[together[crossing(together, nodes)]]) <= 1


@pytest.mark.parametrize(("pairs", "nodes"), CASES)
def test_there_are_hardly_more_turns_than_the_busiest_agent_or_node_needs(pairs, nodes):
    needed = max(most(pairs), most(nodes[pairs[crossing(pairs, nodes)]]))
    assert needed <= turns(pairs, nodes).max() + 1 <= 2 * needed - 1


@pytest.mark.parametrize(("pairs", "nodes"), CASES)
def test_the_turns_are_the_same_on_all_ranks(pairs, nodes):
    np.testing.assert_array_equal(turns(pairs, nodes), turns(pairs.copy(), nodes.copy()))
    renamed = np.unique(nodes, return_inverse=True)[1]
    np.testing.assert_array_equal(turns(pairs, nodes), turns(pairs, renamed))


def test_pairs_between_two_nodes_wait_for_each_other_and_others_do_not():
    """Two nodes of four agents, all linked to their like, and to the next one of their node."""
    nodes = np.repeat([3, 8], 4)
    pairs = np.array([(0, 1), (0, 4), (1, 5), (2, 3), (2, 6), (3, 7), (4, 5), (6, 7)])
    turn_of = turns(pairs, nodes)
    between = turn_of[crossing(pairs, nodes)]
    assert sorted(between.tolist()) == [0, 1, 2, 3]
    assert turn_of.max() == 3  # pairs within a node need no turn of their own


def test_no_pairs_take_no_turn():
    assert turns(pairs_of(np.empty((0, 2), dtype=int)), np.zeros(1, dtype=int)).size == 0
