"""Where the agents and edges of a network stand in a run file that has seen other networks.

A run file has a column for every agent that the run began with, and for every edge that there ever
was.  An agent that has left, or an edge that is no more, keeps what it had spent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.runfile.schema import row_shape

if TYPE_CHECKING:
    from sundsbo_mpi.runfile.contents import Contents
    from sundsbo_mpi.runfile.schema import Array


@dataclass(frozen=True)
class Columns:
    """The columns of the present agents, (n',), and edges, (E',), in the order of their rows."""

    agents: Array
    edges: Array

    def shape(self, path: str) -> tuple[int, ...]:
        """Return the shape of a row's value of the series."""
        return row_shape(path, len(self.agents), len(self.edges))

    def in_order(self, path: str) -> bool:
        """Say whether the values of a row stand one behind the other, from the first column on."""
        columns = self._of(path)
        return columns is None or bool((columns == np.arange(len(columns))).all())

    def spread(self, path: str, value: Array, last: Array) -> Array:
        """Return a row for the file: the ``value`` in its columns, elsewhere the ``last`` one."""
        row = last.copy()
        row[self._of(path)] = value
        return row

    def _of(self, path: str) -> Array | None:
        return {"agents": self.agents, "edges": self.edges}.get(path.partition("/")[0])


def widened(contents: Contents, agents: Array, edges: Array) -> tuple[Contents, Columns]:
    """Give the new ones among the edges a column, and say where all of them stand.

    Args:
        contents: What the file has held so far.
        agents: The numbers of the present agents in the file, (n',).
        edges: The present edges between these agents, who count from 0 there, (E', 2).
    """
    named = np.asarray(agents)[np.asarray(edges, dtype=np.int64).reshape(-1, 2)]
    known = {(int(i), int(j)): column for column, (i, j) in enumerate(contents.edges)}
    before = len(known)
    places = [known.setdefault((int(i), int(j)), len(known)) for i, j in named]
    columns = Columns(np.asarray(agents), np.array(places, dtype=np.int64))
    if len(known) == before:
        return contents, columns
    spent = contents.series["edges/bytes"]
    unused = np.zeros((len(spent), len(known) - before), dtype=spent.dtype)
    series = {**contents.series, "edges/bytes": np.concatenate((spent, unused), axis=1)}
    return replace(contents, edges=np.array(list(known), dtype=np.int64), series=series), columns
