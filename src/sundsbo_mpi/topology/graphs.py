"""Graphs as bytes: GraphML, GML and lists of edges, and the weights their edges get."""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from sundsbo_mpi.errors import UsageError, brief, printable, unknown
from sundsbo_mpi.topology.links import adjacency, metropolis, with_rest

if TYPE_CHECKING:
    from collections.abc import Callable

    import networkx as nx

    from sundsbo_mpi.topology.reading import Reading

Edge = tuple[int, int, dict[str, Any]]
MAPPED = 100
NAMED = 20
"""Attributes in a message."""
MOST_EDGES = 2**20
"""Lines of a list of edges, which become a gigabyte of Python objects."""
LONGEST_ID = 200
"""Characters of a node's id; NumPy keeps the ids of all agents as long as the longest one."""
BY_DEGREES = "its edges get Metropolis-Hastings weights"
_NUMBER = re.compile(r"[+-]?\d+").fullmatch


def _parse_graphml(content: bytes) -> nx.Graph:
    """Parse GraphML with one graph, whose edges join nodes that it declares."""
    from xml.etree import ElementTree

    import networkx as nx

    _refuse_doctype(content)
    found: dict[str, list[Any]] = {"graph": [], "node": [], "edge": []}
    for element in ElementTree.fromstring(content).iter():
        found.get(str(element.tag).rpartition("}")[2], []).append(element)
    if len(found["graph"]) > 1:
        raise ValueError(f"it holds {len(found['graph'])} graphs, expected one and none within it")
    declared = {node.get("id") for node in found["node"]}
    for end in (edge.get(end) for edge in found["edge"] for end in ("source", "target")):
        if end not in declared:
            raise ValueError(f"an edge ends at the node {brief(end)}, which it does not declare")
    return nx.read_graphml(BytesIO(content))


def _refuse_doctype(content: bytes) -> None:
    """Refuse a document type, whose entities can grow without bound or name other files."""
    from xml.parsers import expat

    def refuse(*_: object) -> None:
        raise ValueError(
            "it declares a document type, which is never read; remove its <!DOCTYPE …>"
        )

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    with contextlib.suppress(expat.ExpatError):  # damage is left to who reads on
        parser.Parse(content, True)


def _parse_gml(content: bytes) -> nx.Graph:
    """Parse GML with the file's ids as nodes; parallel edges are let in, to be merged aloud."""
    import networkx as nx

    # Blanks but no line breaks before the key: many empty lines would take quadratic time.
    text = re.sub(r"(?m)^[ \t]*multigraph\s+\d+\s*$", "", content.decode("utf-8-sig"))
    text = re.sub(r"(?m)^([ \t]*graph\s*\[)", r"\1 multigraph 1\n", text, count=1)
    return nx.parse_gml(text.splitlines(), label="id")


def _parse_edges(content: bytes) -> nx.Graph:
    """Parse one edge a line: two node ids, then nothing, one value, or {'name': value, …}.

    The value is the attribute ``weight``; # and % start comments; commas may replace spaces.
    """
    import networkx as nx

    lines = content.decode("utf-8-sig").splitlines()
    if len(lines) > MOST_EDGES:
        raise ValueError(f"it has {len(lines):,} lines, expected at most {MOST_EDGES:,}")
    lines = [re.split("[#%]", line)[0].strip() for line in lines]
    edges = [line if "{" in line else re.sub(r"[,;\s]+", " ", line).strip() for line in lines]
    for number, edge in enumerate(edges, 1):
        if edge and len(edge.split()) < 2:
            raise ValueError(f"line {number} is {brief(edge)} where an edge has two node ids")
    edges = [edge for edge in edges if edge]
    first, *others = [edge.split()[:2] for edge in edges] or [[]]
    if others and not any(map(_NUMBER, first)) and all(all(map(_NUMBER, ends)) for ends in others):
        raise ValueError(
            f"it starts with {brief(' '.join(first))} where the other edges have numbers, "
            "which looks like a header; remove that line"
        )
    data: Any = False
    if any("{" in edge for edge in edges):
        data = True
    elif any(len(edge.split()) > 2 for edge in edges):
        data = [("weight", str)]
    return nx.parse_edgelist(edges, data=data, create_using=nx.MultiGraph)


PARSERS: dict[str, Callable[[bytes], nx.Graph]] = {
    "graphml": _parse_graphml,
    "gml": _parse_gml,
    "edges": _parse_edges,
}


def read_graph(
    content: bytes, form: str, reading: Reading
) -> tuple[csr_array, tuple[str, ...], tuple[str, ...]]:
    """Return W, the sentences to say aloud, and the file's node id of every agent.

    Edges get Metropolis-Hastings weights, or those of ``reading.weights`` with w_ii = 1 - Σ_j w_ij.
    Self-loops are dropped and parallel edges merged.  Node ids 0..n-1 are ranks, 1..n are shifted;
    other numbers are sorted, and other names keep the order of the file.

    Raises:
        UsageError: The graph is empty or directed, or the attribute is missing or contradictory.
        ValueError: The content is damaged or of another format (networkx.NetworkXError, …).
    """
    graph = PARSERS[form](content)
    if not graph.number_of_nodes():
        raise ValueError("it holds no nodes")
    notes: list[str] = []
    if graph.is_directed():
        if not reading.undirected:
            raise UsageError("its edges are directed; give --undirected to read them as two-way.")
        notes.append("its directed edges are read as undirected ones")
    agent_of, note = _number(_distinct([str(node) for node in graph]))
    notes += [note] if note else []
    ends = [(agent_of[str(u)], agent_of[str(v)], data) for u, v, data in graph.edges(data=True)]
    notes += _irregular(ends)
    if reading.weights is None:
        pairs = np.array([(i, j) for i, j, _ in ends], dtype=np.int64).reshape(-1, 2)
        matrix = metropolis(adjacency(len(agent_of), pairs))
        notes.append(BY_DEGREES)
        notes += _unused(ends)
    else:
        matrix = _attribute_weights(ends, reading.weights, tuple(agent_of))
    return matrix, tuple(notes), tuple(agent_of)


def _distinct(nodes: list[str]) -> list[str]:
    """Return the node ids, of which no two may be alike, 1 and "1" say, and none endless."""
    longest = max(map(len, nodes))
    if longest > LONGEST_ID:
        raise ValueError(f"a node id has {longest} characters, expected at most {LONGEST_ID}")
    twice, times = Counter(nodes).most_common(1)[0]
    if times > 1:
        raise ValueError(f"{times} nodes have the id {brief(twice)}")
    return nodes


def _number(nodes: list[str]) -> tuple[dict[str, int], str | None]:
    """Return the agent of every node id, in the order of the agents, and how it was found."""
    if all(map(_NUMBER, nodes)):
        order = sorted(nodes, key=int)
        numbers = [int(node) for node in order]
        if len(set(numbers)) < len(numbers):
            raise ValueError("some node ids are the same number, such as 1 and 01")
        agent_of = {node: agent for agent, node in enumerate(order)}
        if numbers == list(range(len(nodes))):
            return agent_of, None
        if numbers == list(range(1, len(nodes) + 1)):
            return agent_of, f"node ids 1..{len(nodes)} are agents 0..{len(nodes) - 1}"
        return agent_of, f"node ids are sorted numerically: {_mapping(order)}"
    return (
        {node: agent for agent, node in enumerate(nodes)},
        f"node ids keep the order of the file: {_mapping(nodes)}",
    )


def _mapping(order: list[str]) -> str:
    told = [f"agent {agent} = node {node}" for agent, node in enumerate(order[:MAPPED])]
    if len(order) > MAPPED:
        told.append(f"and so on up to agent {len(order) - 1} = node {order[-1]}")
    return printable(", ".join(told))


def _irregular(ends: list[Edge]) -> list[str]:
    loops = [i for i, j, _ in ends if i == j]
    times = Counter((min(i, j), max(i, j)) for i, j, _ in ends if i != j)
    extra = [pair for pair, count in times.items() if count > 1]
    notes = []
    if loops:
        notes.append(f"self-loops dropped: {len(loops)}, the first at agent {loops[0]}")
    if extra:
        more = sum(times[pair] - 1 for pair in extra)
        i, j = extra[0]
        notes.append(f"parallel edges merged: {more}, the first between agents {i} and {j}")
    return notes


def _unused(ends: list[Edge]) -> list[str]:
    names = _attributes(ends)
    if not names:
        return []
    return [f"edge attributes are not used as weights without --weights: {', '.join(names)}"]


def _attributes(ends: list[Edge]) -> list[str]:
    """Return the first few names of attributes; a list of edges may use anything for a name."""
    names = sorted({str(name) for _, _, data in ends for name in data})
    return [printable(name)[:LONGEST_ID] for name in names[:NAMED]]


def _attribute_weights(ends: list[Edge], name: str, nodes: tuple[str, ...]) -> csr_array:
    shares: dict[tuple[int, int], float] = {}
    for i, j, data in ends:
        edge = printable(f"the edge between nodes {nodes[i]} and {nodes[j]}")
        if name not in data:
            if any(name in other for _, _, other in ends):
                raise UsageError(f"{edge} has no attribute '{name}'; give every edge one.")
            raise unknown("edge attribute", name, _attributes(ends))
        share = _number_of(data[name], edge)
        if i != j and shares.setdefault((min(i, j), max(i, j)), share) != share:
            raise UsageError(
                f"{edge} is there with the weights {shares[min(i, j), max(i, j)]:g} and {share:g}, "
                "expected one weight per pair; merge them."
            )
    one, other = np.array(list(shares), dtype=np.int64).reshape(-1, 2).T
    both = np.concatenate([one, other]), np.concatenate([other, one])
    values = np.tile(np.array(list(shares.values()), dtype=float), 2)
    return with_rest(csr_array((values, both), shape=(len(nodes), len(nodes))))


def _number_of(value: Any, edge: str) -> float:
    try:
        share = float(value)
    except (TypeError, ValueError, OverflowError):
        share = math.nan
    if not math.isfinite(share):
        raise UsageError(
            f"{edge} has the weight {brief(str(value))}, expected a finite number; correct it."
        )
    return share
