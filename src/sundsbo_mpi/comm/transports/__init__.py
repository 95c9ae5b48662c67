"""The ways in which a message comes to the neighbours, by the names that a user may choose.

``network.Network`` connects the agents by one of them, and ``Network.plan`` returns the planned
``exchange.Exchange`` of one payload:

    network = Network(comm, mixing, Wires("shared"))
    exchange = network.plan(dtype, length)
    exchange.packed.copy_(message)
    exchange.start(links)
    exchange.finish()           # exchange.arrived, in the order of links.sources
    exchange.close()
    network.close()

Only names live here, so that settings can be checked where there is no MPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SHARED, COLLECTIVE, PERSISTENT, ONE_BY_ONE = "shared", "neighbor", "persistent", "p2p"
SPOKEN: Mapping[str, str] = {
    SHARED: "shared memory",
    COLLECTIVE: "Neighbor_alltoallv",
    PERSISTENT: "persistent Neighbor_alltoallv",
    ONE_BY_ONE: "point to point",
}
"""What the routes are called in messages to the user."""


class Transport(NamedTuple):
    """The routes of one transport; where W changes, the far one is a message to each neighbour."""

    near: str
    """The route between agents of one node."""
    far: str
    """The route between agents of different nodes."""
    about: str

    def describe(self, near: bool, far: bool) -> str:
        """Name the routes, as far as there are links within nodes (near) and between them."""
        if not (near or far):
            return "no links"
        if near and far and self.near != self.far:
            return f"{SPOKEN[self.near]} within a node, {SPOKEN[self.far]} between nodes"
        return SPOKEN[self.near if near else self.far]


TRANSPORTS: Mapping[str, Transport] = {
    "auto": Transport(SHARED, PERSISTENT, "shared within a node, persistent between nodes"),
    "neighbor": Transport(COLLECTIVE, COLLECTIVE, "a neighbourhood collective in every round"),
    "persistent": Transport(PERSISTENT, PERSISTENT, "one neighbourhood collective, planned once"),
    "p2p": Transport(ONE_BY_ONE, ONE_BY_ONE, "one message for every neighbour"),
    "shared": Transport(SHARED, ONE_BY_ONE, "shared within a node, p2p between nodes"),
}
DEFAULT = "auto"
