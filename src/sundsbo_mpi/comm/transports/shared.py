"""The route within a node: neighbours read an agent's message where it lies.

All agents of a node keep their messages in one window of shared memory, each in two slots that take
turns.  The messages that MPI carries are empty: i's token of round r tells j

    "my slot of round r is filled, and I have finished reading yours of round r - 1".

It goes to those who read i in round r and to those whom i read in round r - 1.  So whoever has all
tokens of round r may read the slots of round r, and fill again the slot of round r - 1 for round
r + 1: nobody ever waits for more than that, and nobody looks at memory to see whether it changed.
On a symmetric network that does not change both sets are the neighbours: one token for each edge,
direction and round.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import torch
from mpi4py import MPI

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.topology import Links

SLOTS = 2
ALIGNMENT = 64
"""Bytes: no two agents' slots share a line of the cache."""
WHERE = "/dev/shm"
"""What Linux backs shared memory with; a page that does not fit there kills who touches it."""


def room() -> float:
    """Return the bytes that can still be shared on this node, infinite where nobody tells."""
    with suppress(OSError):
        found = os.statvfs(WHERE)
        return found.f_bavail * found.f_frsize
    return math.inf


def needed(node: MPI.Intracomm, size: int) -> int:
    """Return the bytes of a node's window for messages of ``size`` bytes.

    The slots of every agent begin a page, and MPI takes one page for itself.
    """
    return node.size * _whole(SLOTS * _aligned(size), mmap.PAGESIZE) + mmap.PAGESIZE


def shortage(node: MPI.Intracomm, size: int) -> str | None:
    """Say so if no window for messages of ``size`` bytes fits; collective on the node."""
    free = node.allreduce(room(), MPI.MIN)
    if free >= needed(node, size):
        return None
    return f"{WHERE} has room for {free} of the {needed(node, size)} bytes of one payload"


def obstacle(node: MPI.Intracomm, size: int) -> str | None:
    """Say why the ranks of a node cannot share messages of ``size`` bytes; collective on it.

    MPI must refuse a window on all ranks of the node or on none: were it to fail on some alone,
    the others would wait for them inside it.
    """
    if lack := shortage(node, size):
        return lack
    try:
        try_window(node)
    except (MPI.Exception, NotImplementedError) as error:
        return f"this MPI makes no shared window here ({error})"
    return None


def try_window(node: MPI.Intracomm) -> None:
    """Make a small window and take it away again; collective on the node."""
    MPI.Win.Allocate_shared(ALIGNMENT, 1, comm=node).Free()


def _aligned(size: int) -> int:
    return _whole(size, ALIGNMENT)


def _whole(size: int, unit: int) -> int:
    return -(-size // unit) * unit


class Window:
    """The slots of all agents of one node, for one payload; making and closing are collective.

    There must be room for it, see ``shortage``; what it takes is seen there from now on.

    Args:
        node: The ranks of the node.
        dtype: Of the messages.
        length: Numbers in a message.
    """

    def __init__(self, node: MPI.Intracomm, dtype: torch.dtype, length: int) -> None:
        self._length, self._dtype = length, dtype
        self._slot_bytes = _aligned(length * dtype.itemsize)
        near_its_owner = MPI.Info.Create({"alloc_shared_noncontig": "true"})
        self._window = MPI.Win.Allocate_shared(
            SLOTS * self._slot_bytes, 1, info=near_its_owner, comm=node
        )
        near_its_owner.Free()
        self.sync = self._window.Sync
        """Order this agent's looks at the window before and after."""
        self._window.Lock_all(MPI.MODE_NOCHECK)
        # Linux takes a page when it is first touched: untouched ones would be promised twice.
        for slot in self.slots(node.rank):
            slot.zero_()
        node.Barrier()

    def slots(self, place: int) -> tuple[Tensor, ...]:
        """Return the slots of the agent at a place in the node."""
        memory, _ = self._window.Shared_query(place)
        return tuple(
            torch.frombuffer(
                memory, dtype=self._dtype, count=self._length, offset=turn * self._slot_bytes
            )
            for turn in range(SLOTS)
        )

    def close(self) -> None:
        """Take the memory away, once all have come here."""
        self._window.Unlock_all()
        self._window.Free()


class Shared:
    """The route between agents of one node.

    Args:
        node: The ranks of the node.
        places: The rank in ``node`` of every agent there.
        window: Their slots.
        steady: Whether the links of all rounds are the same.
    """

    def __init__(
        self, node: MPI.Intracomm, places: Mapping[int, int], window: Window, steady: bool
    ) -> None:
        self._node, self._places, self._window, self._steady = node, places, window, steady
        self._slots = {j: window.slots(place) for j, place in places.items()}
        self._before: Links | None = None
        self._tokens: list[MPI.Prequest] = []

    def start(self, slot: int, links: Links) -> Sequence[MPI.Request]:
        """Tell the neighbours that the slot is filled and those read last are free."""
        self._window.sync()
        before, self._before = self._before or links, links
        if not self._steady:
            return self._exchange(before, links)
        if not self._tokens:
            self._tokens = self._plan(links)
        if self._tokens:
            MPI.Prequest.Startall(self._tokens)
        return self._tokens

    def _exchange(self, before: Links, links: Links) -> list[MPI.Request]:
        awaited = self._at(links.sources, before.destinations)
        told = self._at(links.destinations, before.sources)
        requests = [self._node.Irecv(_token(), place) for place in awaited]
        return requests + [self._node.Isend(_token(), place) for place in told]

    def _plan(self, links: Links) -> list[MPI.Prequest]:
        others = self._at(links.sources, links.destinations)
        requests = [self._node.Recv_init(_token(), place) for place in others]
        return requests + [self._node.Send_init(_token(), place) for place in others]

    def _at(self, *agents: Sequence[int] | Mapping[int, float]) -> list[int]:
        return [self._places[j] for j in sorted(set().union(*agents)) if j in self._places]

    def finish(self) -> None:
        """See what the neighbours wrote."""
        self._window.sync()

    def arrived(self, slot: int) -> Mapping[int, Tensor]:
        """Return the neighbours' own slots, to be read only."""
        assert self._before is not None
        sources = self._before.sources
        return {j: self._slots[j][slot] for j in sources if j in self._places}

    def close(self) -> None:
        """Free the tokens' requests and take the window away."""
        for request in self._tokens:
            request.Free()
        self._slots = {}
        self._window.close()


def _token() -> list[object]:
    return [np.empty(0, dtype=np.uint8), MPI.BYTE]
