"""Weight matrices of any size, made without the package."""

import itertools

import networkx as nx
import numpy as np


def exponential(n):
    """Agent i is linked with i +- 1, 2, 4, ..."""
    offsets = [2**e for e in range(n.bit_length()) if 2**e < n]
    return nx.circulant_graph(n, offsets or [0])


def grid(n):
    """The widest rows that fill a rectangle with n agents; a line if n is prime."""
    rows = max(r for r in range(1, int(n**0.5) + 1) if n % r == 0)
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, n // rows), ordering="sorted")


def erdos_renyi(n):
    """The first connected sample."""
    samples = (nx.gnp_random_graph(n, 0.5, seed=s) for s in itertools.count())
    return next(g for g in samples if nx.is_connected(g))


GRAPHS = {
    "ring": nx.cycle_graph,
    "star": lambda n: nx.star_graph(n - 1),
    "complete": nx.complete_graph,
    "exponential": exponential,
    "grid": grid,
    "erdos-renyi": erdos_renyi,
}


def dense(name, n):
    """Metropolis-Hastings weights, differing from edge to edge where degrees do."""
    graph = nx.Graph(GRAPHS[name](n))
    graph.remove_edges_from(nx.selfloop_edges(graph))
    W = np.zeros((n, n))
    for i, j in graph.edges:
        W[i, j] = W[j, i] = 1 / (1 + max(graph.degree[i], graph.degree[j]))
    W[np.diag_indices(n)] = 1 - W.sum(axis=1)
    return W


def uneven_ring(n):
    """A ring whose edges all differ in weight: a neighbour taken for another is noticed."""
    W = np.zeros((n, n))
    for i in range(n if n > 2 else n - 1):
        j = (i + 1) % n
        W[i, j] = W[j, i] = 0.1 + 0.3 * i / n
    W[np.diag_indices(n)] = 1 - W.sum(axis=1)
    return W
