"""Which agent each rank becomes, with regard to the nodes that the ranks are on."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from sundsbo_mpi.comm.agreement import on_root
from sundsbo_mpi.comm.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi4py import MPI

    from sundsbo_mpi.topology import Mixing


def seat(
    comm: MPI.Intracomm, mixing: Mixing, nodes: Sequence[int], *, place: bool
) -> tuple[MPI.Intracomm, str | None]:
    """Return a communicator whose rank i is agent i, and what must be said of it; collective.

    Rank 0, which does the file work, is agent 0 in any case.

    Args:
        comm: One rank per agent.
        mixing: The weights, by whose links ranks are told apart.
        nodes: For every rank a number of its node.
        place: Whether agents are moved so that fewer links lead from one node to another; else
            agent i is rank i of ``comm``.
    """
    agents, said = on_root(Tally(comm), lambda: assigned(mixing, nodes, place=place))
    if agents == tuple(range(comm.size)):
        return comm, said
    return cast("MPI.Intracomm", comm.Split(key=agents[comm.rank])), said


def assigned(
    mixing: Mixing, nodes: Sequence[int], *, place: bool
) -> tuple[tuple[int, ...], str | None]:
    """Return the agent of every rank, and how many links cross nodes where that is worth a word."""
    from sundsbo_mpi.topology.grouping import crossing, grouped

    in_order = tuple(range(mixing.agents))
    if len(set(nodes)) == 1:
        return in_order, "placement: there is one node, which no link leaves" if place else None
    if not mixing.matrices:
        said = "placement: all agents are linked in turn, so that no placement is better"
        return in_order, said if place else None
    count, before = len(mixing.edges()) // (1 + mixing.symmetric), crossing(mixing, nodes)
    if not place:
        hint = "; --place looks for a better placement" if before else ""
        return in_order, f"{before} of {count} links cross nodes{hint}"
    agents = grouped(mixing, nodes)
    node_of = np.empty(mixing.agents, dtype=np.int64)
    node_of[list(agents)] = nodes
    after = crossing(mixing, node_of.tolist())
    instead = f"instead of {before}" if after < before else "as without --place"
    return agents, f"placement: {after} of {count} links cross nodes {instead}"
