"""The three choices that a file of weights or of a graph may leave open, and the known formats."""

from __future__ import annotations

from dataclasses import dataclass

from sundsbo_mpi.errors import unknown

MATRIX_SUFFIXES = {
    ".npz": "npz",
    ".npy": "npy",
    ".txt": "text",
    ".csv": "text",
    ".tsv": "text",
    ".mtx": "mtx",
}
GRAPH_SUFFIXES = {
    ".graphml": "graphml",
    ".gml": "gml",
    ".edges": "edges",
    ".edgelist": "edges",
}
FORMATS = tuple(dict.fromkeys([*MATRIX_SUFFIXES.values(), *GRAPH_SUFFIXES.values()]))


@dataclass(frozen=True)
class Reading:
    """How to read a topology file where its name and content alone do not say.

    Args:
        format: One of ``FORMATS``; None goes by the suffix of the file's name.
        weights: Edge attribute of a graph that holds w_ij; None gives Metropolis-Hastings weights.
        undirected: Read the edges of a directed graph as undirected ones.

    Raises:
        UsageError: ``format`` is not a known one.
    """

    format: str | None = None
    weights: str | None = None
    undirected: bool = False

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise unknown("topology format", self.format, FORMATS)
