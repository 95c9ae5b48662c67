"""A picture of the network: agents as numbered discs, edges as wide as their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.pictures.figures import check_picture, new_figure, save_picture
from sundsbo_mpi.pictures.labels import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from sundsbo_mpi.topology.mixing import Mixing

EDGE_COLOUR, AGENT_COLOUR, TEXT_COLOUR = "#0072B2", "#F0E442", "#1A1A1A"
LABELLED_UP_TO = 200


def draw_weights(weights: Mixing, path: str) -> None:
    """Draw the graph of W, or of the average of the W_k.

    Args:
        weights: What to draw.
        path: The picture; its suffix says whether it is .png, .pdf or .svg.

    Raises:
        UsageError: matplotlib is not installed, the suffix is unknown, or the file cannot be
            written.
    """
    check_picture(path)
    figure = new_figure(figsize=(7, 7))
    axes = figure.add_subplot()
    axes.set_title(
        f"{plain(weights.description)}\n"
        f"n = {weights.agents}, ρ = {weights.rho_text}{_smallest(weights)}",
        color=TEXT_COLOUR,
    )
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    draw_graph(axes, weights.mean, weights.edges(), symmetric=weights.symmetric)
    save_picture(figure, path, bbox="tight")


def _smallest(weights: Mixing) -> str:
    if weights.lambda_min is None:
        return ""
    bound = "" if weights.matrices else "at least "
    return f", smallest eigenvalue {bound}{round(weights.lambda_min, 9) + 0.0:.4g}"


def draw_graph(axes: Axes, mean: csr_array, edges: NDArray[np.int64], *, symmetric: bool) -> None:
    """Draw agents as numbered discs, and edges as wide as their weights.

    Args:
        axes: Where to draw.
        mean: W, or the average of the W_k, (n, n).
        edges: Pairs of a sender and a receiver, (E, 2).
        symmetric: Whether both directions of a link are one line, without an arrow.
    """
    import networkx as nx

    agents = mean.shape[0]
    if symmetric:
        edges = edges[edges[:, 0] < edges[:, 1]]
    graph = nx.Graph() if symmetric else nx.DiGraph()
    graph.add_nodes_from(range(agents))
    graph.add_edges_from(edges.tolist())
    shares = np.array([mean[j, i] for i, j in edges])
    size = min(600.0, 12000 / agents)
    scale = min(6.0, 24 / agents**0.5) / max(shares, default=1)
    place = _layout(graph)
    nx.draw_networkx_edges(
        graph,
        place,
        ax=axes,
        edgelist=edges.tolist(),
        width=(scale * shares).tolist(),
        edge_color=EDGE_COLOUR,
        node_size=size,
    )
    nx.draw_networkx_nodes(
        graph, place, ax=axes, node_size=size, node_color=AGENT_COLOUR, edgecolors=TEXT_COLOUR
    )
    if agents <= LABELLED_UP_TO:
        nx.draw_networkx_labels(
            graph, place, ax=axes, font_size=max(4.0, size**0.5 * 0.45), font_color=TEXT_COLOUR
        )
    _legend(axes, shares, scale)


def _layout(graph: Any) -> dict[int, np.ndarray]:
    """Place agents so that distances in the picture follow distances in the graph."""
    import networkx as nx

    if graph.number_of_nodes() <= LABELLED_UP_TO:
        circle = nx.circular_layout(graph)
        placed: dict[int, np.ndarray] = nx.kamada_kawai_layout(graph, pos=circle)
    else:
        placed = nx.spectral_layout(graph)
    return placed


def _legend(axes: Axes, shares: np.ndarray, scale: float) -> None:
    """Show what a width stands for: up to four of the weights, from the least to the largest."""
    from matplotlib.lines import Line2D

    distinct = np.unique(shares.round(9))
    if not distinct.size:
        return
    picked = distinct[np.unique(np.linspace(0, distinct.size - 1, 4).round().astype(int))]
    lines = [
        Line2D([], [], color=EDGE_COLOUR, linewidth=scale * share, label=f"{share:.4g}")
        for share in picked
    ]
    axes.legend(
        handles=lines,
        title="weight of an edge",
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=4,
        frameon=False,
        handlelength=3,
    )
