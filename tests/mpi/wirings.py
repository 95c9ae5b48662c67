"""Everything that messages can travel over, also on nodes that are only pretended."""

import torch
from mpi4py import MPI

from sundsbo_mpi.comm.transports.network import Wires
from sundsbo_mpi.comm.waiting import SPARING, Watchful


class Queue:
    """A device in host memory, whose copies are done when they must be and not before.

    It is honest about order: what was not settled has not happened, and says NaN.
    """

    def __init__(self):
        self._waiting = []

    def empty(self, length, dtype):
        return torch.full((length,), torch.nan, dtype=dtype)

    host = empty

    def copy(self, to, from_):
        self._waiting.append((to, from_))

    def settle(self):
        for to, from_ in self._waiting:
            to.copy_(from_)
        self._waiting.clear()

    def known_to_mpi(self):
        return True


MESSAGES = ("neighbor", "persistent", "p2p")
WIRINGS = {name: lambda _, name=name: Wires(name) for name in (*MESSAGES, "shared")} | {
    # On pretended nodes of agents that are neighbours, that are not, and of one agent each.
    "auto, pairs": lambda rank: Wires("auto", part=rank // 2),
    "auto, odd and even": lambda rank: Wires("auto", part=rank % 2),
    "auto, apart": lambda rank: Wires("auto", part=rank),
    "shared, pairs": lambda rank: Wires("shared", part=rank // 2),
    "shared, pairs, crowded": lambda rank: Wires("shared", part=rank // 2, waiting=SPARING),
    "staged": lambda _: Wires("auto", layer=Queue()),
    "staged, shared": lambda rank: Wires("shared", layer=Queue(), part=rank % 2),
    "direct": lambda _: Wires("auto", layer=Queue(), direct=True),
    "watched": lambda _: Wires(waiting=Watchful(MPI.COMM_WORLD)),
    "watched, staged": lambda _: Wires(waiting=Watchful(MPI.COMM_WORLD), layer=Queue()),
}
"""Functions of the rank by name."""
