"""Graph files: which weights their edges get, which agent a node is, and what is said aloud."""

import gzip
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import Reading, read_weights

WHEEL = nx.wheel_graph(7)


def metropolis(graph):
    """Weigh a simple graph by the definition, one entry at a time."""
    order = list(graph)
    W = np.zeros((len(order), len(order)))
    for i, u in enumerate(order):
        for j, v in enumerate(order):
            if graph.has_edge(u, v) and i != j:
                W[i, j] = 1 / (1 + max(graph.degree[u], graph.degree[v]))
        W[i, i] = 1 - W[i].sum()
    return W


def lines(*edges):
    return "".join(edge + "\n" for edge in edges)


def load(path, content, **reading):
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content)
    return read_weights(str(path), Reading(**reading))


def refusal(path, content, **reading):
    with pytest.raises(UsageError) as caught:
        load(path, content, **reading)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def said(loaded):
    return " ".join(loaded.notes)


def written(graph, path):
    {
        ".graphml": nx.write_graphml_xml,
        ".gml": nx.write_gml,
        ".edges": nx.write_edgelist,
        ".edgelist": nx.write_edgelist,
    }[path.suffix](graph, path)
    return path.read_bytes()


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("suffix", [".graphml", ".gml", ".edges", ".edgelist"])
def test_graphs_get_metropolis_hastings_weights(tmp_path, suffix, zipped):
    content = written(WHEEL, tmp_path / f"made{suffix}")
    path = tmp_path / (f"wheel{suffix}" + ".gz" * zipped)
    loaded = load(path, gzip.compress(content) if zipped else content)
    np.testing.assert_allclose(loaded.weights.matrix.toarray(), metropolis(WHEEL), atol=1e-15)
    assert loaded.node_ids == tuple("0123456")
    assert loaded.notes == (f"'{path}': its edges get Metropolis-Hastings weights.",)


def test_the_format_can_be_named(tmp_path):
    content = written(WHEEL, tmp_path / "made.edges")
    loaded = load(tmp_path / "wheel.txt", content, format="edges")
    np.testing.assert_allclose(loaded.weights.matrix.toarray(), metropolis(WHEEL), atol=1e-15)


TRIANGLE = metropolis(nx.cycle_graph(3))


def test_one_node_is_one_agent(tmp_path):
    loaded = load(tmp_path / "one.gml", "graph [\n node [ id 0 ]\n]\n")
    assert loaded.weights.matrix.toarray() == [[1.0]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.edges", lines("0 1", "1 2", "2 0", "0 1", "1 0", "2 2")),
        (
            "g.gml",
            "graph [\n node [ id 0 ] node [ id 1 ] node [ id 2 ]\n"
            + lines(
                *(
                    f"edge [ source {i} target {j} ]"
                    for i, j in ["01", "12", "20", "01", "10", "22"]
                )
            )
            + "]\n",
        ),
        (
            "g.graphml",
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
            + '<graph edgedefault="undirected">'
            + "".join(f'<node id="{i}"/>' for i in range(3))
            + "".join(
                f'<edge source="{i}" target="{j}"/>'
                for i, j in ["01", "12", "20", "01", "10", "22"]
            )
            + "</graph></graphml>",
        ),
    ],
)
def test_self_loops_are_dropped_and_parallel_edges_merged_aloud(tmp_path, name, content):
    loaded = load(tmp_path / name, content)
    np.testing.assert_allclose(loaded.weights.matrix.toarray(), TRIANGLE, atol=1e-15)
    assert "self-loops dropped: 1, the first at agent 2" in said(loaded)
    assert "parallel edges merged: 2, the first between agents 0 and 1" in said(loaded)


def test_gml_that_denies_being_a_multigraph_is_merged_too(tmp_path):
    content = lines(
        "graph [", "  multigraph 0", "node [ id 0 ]", "node [ id 1 ]",
        "edge [ source 0 target 1 ]", "edge [ source 1 target 0 ]", "]",
    )  # fmt: skip
    assert "parallel edges merged: 1" in said(load(tmp_path / "g.gml", content))


def test_nodes_are_ids_and_not_labels(tmp_path):
    content = lines(
        "graph [", 'node [ id 1 label "2" ]', 'node [ id 0 label "0" ]', 'node [ id 2 label "1" ]',
        "edge [ source 0 target 1 ]", "edge [ source 1 target 2 ]", "]",
    )  # fmt: skip
    loaded = load(tmp_path / "g.gml", content)
    assert tuple(loaded.weights.links(1).sources) == (0, 2)
    assert loaded.node_ids == ("0", "1", "2")


def path_over(names):
    return lines(*(f"{u} {v}" for u, v in pairwise(names)))


def test_ids_from_zero_are_ranks_in_whatever_order_they_come(tmp_path):
    loaded = load(tmp_path / "g.edges", path_over([11, 0, 2, 10, 1, 3, 4, 5, 6, 7, 8, 9]))
    assert tuple(loaded.weights.links(10).sources) == (1, 2)
    assert loaded.node_ids == tuple(map(str, range(12)))
    assert "node" not in said(loaded)


def test_ids_from_one_are_shifted(tmp_path):
    loaded = load(tmp_path / "g.edges", path_over([3, 1, 2, 4]))
    assert tuple(loaded.weights.links(2).sources) == (0,)
    assert loaded.node_ids == ("1", "2", "3", "4")
    assert "node ids 1..4 are agents 0..3" in said(loaded)


def test_other_numbers_are_sorted_as_numbers(tmp_path):
    loaded = load(tmp_path / "g.edges", path_over([10, 9, 100]))
    assert loaded.node_ids == ("9", "10", "100")
    assert tuple(loaded.weights.links(0).sources) == (1, 2)
    assert "sorted numerically: agent 0 = node 9, agent 1 = node 10" in said(loaded)


def test_names_keep_the_order_of_the_file(tmp_path):
    loaded = load(tmp_path / "g.edges", path_over(["oslo", "bergen", "3", "alta"]))
    assert loaded.node_ids == ("oslo", "bergen", "3", "alta")
    assert "order of the file: agent 0 = node oslo, agent 1 = node bergen" in said(loaded)


def test_graphml_nodes_are_in_the_order_of_its_node_elements(tmp_path):
    graph = nx.Graph()
    graph.add_nodes_from(["n2", "n0", "n1"])
    graph.add_edges_from([("n0", "n1"), ("n1", "n2")])
    loaded = load(tmp_path / "g.graphml", written(graph, tmp_path / "made.graphml"))
    assert loaded.node_ids == ("n2", "n0", "n1")
    assert tuple(loaded.weights.links(2).sources) == (0, 1)


WEIGHTED = nx.Graph()
WEIGHTED.add_edge(0, 1, share=0.5, length=3)
WEIGHTED.add_edge(1, 2, share=0.25, length=4)
SHARES = np.array([[0.5, 0.5, 0], [0.5, 0.25, 0.25], [0, 0.25, 0.75]])


@pytest.mark.parametrize("suffix", [".graphml", ".gml", ".edges"])
def test_an_attribute_is_a_weight_only_when_asked_for(tmp_path, suffix):
    content = written(WEIGHTED, tmp_path / f"made{suffix}")
    path = tmp_path / f"g{suffix}"
    loaded = load(path, content, weights="share")
    np.testing.assert_array_equal(loaded.weights.matrix.toarray(), SHARES)
    assert loaded.notes == ()
    plain = load(path, content)
    np.testing.assert_allclose(
        plain.weights.matrix.toarray(), metropolis(nx.path_graph(3)), atol=1e-15
    )
    assert "not used as weights without --weights: length, share" in said(plain)
    assert "row 1, column 1 is -6" in refusal(path, content, weights="length")
    assert "did you mean 'share'" in refusal(path, content, weights="shares")


def test_the_third_column_of_a_list_of_edges_is_called_weight(tmp_path):
    content = "% a comment\n0,1,0.5\n1, 2, 0.25 # another\n2;2;0.7\n"
    loaded = load(tmp_path / "g.edges", content, weights="weight")
    np.testing.assert_array_equal(loaded.weights.matrix.toarray(), SHARES)
    assert "self-loops dropped: 1" in said(loaded)


def test_merged_edges_must_agree_on_their_weight(tmp_path):
    same = lines("0 1 0.5", "1 0 0.5", "1 2 0.25")
    loaded = load(tmp_path / "g.edges", same, weights="weight")
    np.testing.assert_array_equal(loaded.weights.matrix.toarray(), SHARES)
    assert "parallel edges merged: 1" in said(loaded)
    other = lines("0 1 0.5", "1 0 0.4", "1 2 0.25")
    assert "with the weights 0.5 and 0.4" in refusal(tmp_path / "g.edges", other, weights="weight")


def test_weights_must_be_numbers_and_on_every_edge(tmp_path):
    words = lines("0 1 {'w': 'much'}", "1 2 {'w': 0.25}")
    assert "nodes 0 and 1 has the weight 'much'" in refusal(
        tmp_path / "g.edges", words, weights="w"
    )
    some = lines("0 1 {'w': 0.5}", "1 2 {'v': 0.25}")
    assert "nodes 1 and 2 has no attribute 'w'" in refusal(tmp_path / "g.edges", some, weights="w")
    none = lines("0 1", "1 2")
    assert "'w'" in refusal(tmp_path / "g.edges", none, weights="w")
    some = lines("0 1", "1 2 0.25")
    assert "no attribute 'weight'" in refusal(tmp_path / "g.edges", some, weights="weight")
    nan = lines("0 1 nan", "1 2 0.25")
    assert "the weight 'nan'" in refusal(tmp_path / "g.edges", nan, weights="weight")
    named = load(tmp_path / "g.edges", lines("0 1 friends", "1 2 rivals"))
    np.testing.assert_allclose(named.weights.matrix[1, 1], 1 / 3)


@pytest.mark.parametrize("suffix", [".graphml", ".gml"])
def test_directed_graphs_are_refused_unless_read_as_undirected(tmp_path, suffix):
    graph = nx.DiGraph([(0, 1), (1, 2), (2, 1)])
    content = written(graph, tmp_path / f"made{suffix}")
    path = tmp_path / f"g{suffix}"
    assert "give --undirected" in refusal(path, content)
    loaded = load(path, content, undirected=True)
    np.testing.assert_allclose(
        loaded.weights.matrix.toarray(), metropolis(nx.path_graph(3)), atol=1e-15
    )
    assert "directed edges are read as undirected" in said(loaded)
    assert "parallel edges merged: 1" in said(loaded)


def test_a_disconnected_graph_is_refused(tmp_path):
    graph = nx.path_graph(4)
    graph.add_node(4)
    content = written(graph, tmp_path / "made.graphml")
    assert "row 4 belongs to one of 1" in refusal(tmp_path / "g.graphml", content)


def test_a_long_mapping_is_cut_when_said_and_kept_whole(tmp_path):
    names = [f"node{i}" for i in range(300)]
    loaded = load(tmp_path / "g.edges", path_over(names))
    assert loaded.node_ids == tuple(names)
    assert "and so on up to agent 299 = node node299" in said(loaded)
