"""Every builder in the registry obeys the laws; the named graphs are the ones they claim to be."""

import networkx as nx
import numpy as np
import pytest

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import BUILDERS

OPTIONS = {"circulant": {"offsets": (1, 3)}}
SIZES = (1, 2, 3, 4, 7, 8, 16)
PLACES = [(name, n) for name in BUILDERS for n in SIZES if name != "hypercube" or n & (n - 1) == 0]


def built(name, n, **options):
    return BUILDERS[name](n, **OPTIONS.get(name, {}), **options)


def graph(weights):
    made = nx.Graph()
    made.add_nodes_from(range(weights.agents))
    made.add_edges_from(weights.edges().tolist())
    return made


@pytest.mark.parametrize(("name", "n"), PLACES)
def test_every_builder_gives_lawful_weights_of_the_asked_size(name, n):
    weights = built(name, n)
    W = weights.matrix.toarray()
    assert W.shape == (n, n)
    assert (W >= 0).all()
    np.testing.assert_array_equal(W, W.T)
    np.testing.assert_allclose(W.sum(axis=0), 1, atol=1e-14)
    assert weights.rho < 1
    assert name in weights.name
    assert f"n={n}" in weights.name
    again = built(name, n)
    assert again.sha256 == weights.sha256


@pytest.mark.parametrize("name", BUILDERS)
def test_one_agent_is_alone_and_lazy_is_the_mean_with_the_identity(name):
    assert built(name, 1).matrix.toarray() == [[1.0]]
    W = built(name, 8).matrix.toarray()
    lazy = built(name, 8, lazy=True)
    np.testing.assert_allclose(lazy.matrix.toarray(), (np.eye(8) + W) / 2, atol=1e-16)
    assert lazy.name.startswith("lazy ")


@pytest.mark.parametrize("name", BUILDERS)
def test_no_agents_are_refused(name):
    with pytest.raises(UsageError, match="0 agents"):
        built(name, 0)


NAMED = {
    "ring": nx.cycle_graph(12),
    "line": nx.path_graph(12),
    "star": nx.star_graph(11),
    "complete": nx.complete_graph(12),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4), ordering="sorted"),
    "torus": nx.convert_node_labels_to_integers(
        nx.grid_2d_graph(3, 4, periodic=True), ordering="sorted"
    ),
    "circulant": nx.circulant_graph(12, [1, 3]),
    "exponential": nx.circulant_graph(12, [1, 3, 7]),
}


@pytest.mark.parametrize("name", NAMED)
def test_graphs_are_those_of_networkx(name):
    assert set(graph(built(name, 12)).edges) == set(map(tuple, map(sorted, NAMED[name].edges)))


def test_hypercube_is_that_of_networkx():
    expected = nx.hypercube_graph(4)
    number = {node: int("".join(map(str, node)), 2) for node in expected}
    expected = nx.relabel_nodes(expected, number)
    assert {frozenset(e) for e in graph(built("hypercube", 16)).edges} == {
        frozenset(e) for e in expected.edges
    }


@pytest.mark.parametrize("name", ["line", "star", "grid", "torus", "erdos-renyi", "hypercube"])
def test_metropolis_hastings_weights_unless_told_otherwise(name):
    weights = built(name, 16)
    degree = dict(graph(weights).degree)
    for i, j in weights.edges():
        assert weights.matrix[i, j] == pytest.approx(1 / (1 + max(degree[i], degree[j])))


@pytest.mark.parametrize("name", ["line", "star", "grid", "torus", "complete", "hypercube"])
def test_edge_weight_is_the_weight_of_every_edge(name):
    weights = built(name, 8, edge_weight=0.01)
    for i, j in weights.edges():
        assert weights.matrix[i, j] == 0.01


def test_complete_graph_averages_at_once():
    np.testing.assert_allclose(built("complete", 9).matrix.toarray(), 1 / 9)


@pytest.mark.parametrize("a", [0.2, 0.4, 0.5])
@pytest.mark.parametrize("n", [3, 8, 10])
def test_ring_is_the_papers(a, n):
    W = built("ring", n, self_weight=a).matrix.toarray()
    for i in range(n):
        assert W[i, i] == a
        assert W[i, (i + 1) % n] == W[i, i - 1] == (1 - a) / 2
    cosines = a + (1 - a) * np.cos(2 * np.pi * np.arange(1, n) / n)
    assert built("ring", n, self_weight=a).rho == pytest.approx(abs(cosines).max())


def test_rings_of_two_and_the_other_name_of_a_ring():
    np.testing.assert_array_equal(
        built("ring", 2, self_weight=0.3).matrix.toarray(), [[0.3, 0.7], [0.7, 0.3]]
    )
    np.testing.assert_allclose(
        built("ring", 7, edge_weight=0.3).matrix.toarray(),
        built("ring", 7, self_weight=0.4).matrix.toarray(),
    )
    with pytest.raises(UsageError, match=r"self-weight 0\.4 and edge weight 0\.3"):
        built("ring", 7, self_weight=0.4, edge_weight=0.3)


def test_exponential_graph_of_ten_adds_up_links_that_coincide():
    row = built("exponential", 10).matrix.toarray()[0]
    np.testing.assert_allclose(row, [1 / 4, 1 / 8, 0, 1 / 4, 0, 0, 0, 1 / 4, 0, 1 / 8])
    assert built("exponential", 10).rho == pytest.approx(0.577, abs=5e-4)


def test_lazy_weights_are_judged_after_halving():
    with pytest.raises(UsageError, match="rho = 1"):
        built("ring", 10, self_weight=0.0)
    assert built("ring", 10, self_weight=0.0, lazy=True).rho == pytest.approx(0.9045, abs=5e-5)


def test_erdos_renyi_follows_its_seed_and_is_redrawn_until_connected():
    sparse = {built("erdos-renyi", 20, probability=0.12, seed=seed).sha256 for seed in range(6)}
    assert len(sparse) == 6
    full = built("erdos-renyi", 12, probability=1.0)
    assert full.sha256 == built("complete", 12).sha256
    with pytest.raises(UsageError, match="raise --probability"):
        built("erdos-renyi", 20, probability=0.001)


def test_erdos_renyi_has_as_many_edges_as_expected():
    edges = [len(built("erdos-renyi", 30, probability=0.4, seed=s).edges()) / 2 for s in range(20)]
    pairs = 30 * 29 / 2
    assert np.mean(edges) == pytest.approx(0.4 * pairs, abs=4 * np.sqrt(pairs * 0.24 / 20))


def test_shapes_that_do_not_exist_are_refused():
    with pytest.raises(UsageError, match="power of two"):
        built("hypercube", 6)
    with pytest.raises(UsageError, match="do not fill 5 rows"):
        built("grid", 12, rows=5)
    assert len(built("grid", 12, rows=1).edges()) == 2 * 11
    with pytest.raises(UsageError, match=r"row 1, column 1 is -0\.2"):
        built("line", 5, edge_weight=0.6)


@pytest.mark.parametrize(
    ("name", "n", "options", "words"),
    [
        ("erdos-renyi", 4, {"seed": -1}, "got seed -1"),
        ("erdos-renyi", 4, {"probability": 1.5}, "got probability 1.5"),
        ("complete", 100_000, {}, "fewer agents"),
        ("erdos-renyi", 100_000, {"probability": 0.5}, "fewer agents"),
    ],
)
def test_what_cannot_be_drawn_is_refused_at_once(name, n, options, words):
    with pytest.raises(UsageError, match=words):
        BUILDERS[name](n, **options)


@pytest.mark.parametrize("n", [4, 6, 10, 30, 100])
def test_random_regular_graphs_of_any_degree(n):
    for degree in {2, 3, n // 2 - 1, n // 2, n // 2 + 1, n - 3, n - 2, n - 1} - {0, 1}:
        made = built("random-regular", n, degree=degree)
        linked = graph(made)
        assert dict(linked.degree) == dict.fromkeys(range(n), degree)
        assert nx.is_connected(linked)
        assert made.sha256 == built("random-regular", n, degree=degree).sha256
    draws = {built("random-regular", 10, degree=8, seed=seed).sha256 for seed in range(4)}
    assert len(draws) == 4


def test_a_dense_random_regular_graph_is_drawn_in_a_moment():
    for degree in (249, 250):
        edges = built("random-regular", 500, degree=degree).edges()
        assert (np.bincount(edges[:, 0]) == degree).all()
        assert len(np.unique(edges, axis=0)) == 500 * degree
