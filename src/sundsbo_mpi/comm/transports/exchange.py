"""One planned exchange: the agent's message goes out, those of its neighbours come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch
    from mpi4py import MPI
    from torch import Tensor

    from sundsbo_mpi.comm.waiting import Waiting
    from sundsbo_mpi.topology import Links


class Route(Protocol):
    """Carries the messages between an agent and some of its neighbours."""

    def start(self, slot: int, links: Links) -> Sequence[MPI.Request]:
        """Let the message in a slot go; return the requests that bring the neighbours' messages."""

    def finish(self) -> None:
        """Hear that all requests are complete."""

    def arrived(self, slot: int) -> Mapping[int, Tensor]:
        """Return by sender where messages lie, in all rounds of a slot over the last links."""

    def close(self) -> None:
        """Free what MPI holds; collective."""


class Connection(Protocol):
    """An agent's links to the others, and how they are planned."""

    destinations: tuple[int, ...]
    """The agents to which this one ever sends, ascending."""
    description: str
    """What the messages travel over, for people; the same on all ranks."""
    notes: tuple[str, ...]
    """What a user must know about the choice, the same on all ranks; ``plan`` may add to it."""

    def plan(self, dtype: torch.dtype, length: int) -> Exchange:
        """Plan the exchange of messages of ``length`` numbers, on the device of the connection.

        Collective.

        Raises:
            AgreedError: the messages are too long on some rank.
        """
        ...

    def close(self) -> None:
        """Let go of the links, once the planned exchanges are closed; collective."""


class Exchange:
    """One exchange of one payload, planned once and repeated every round.

    A round is: fill ``packed``, or the parts into which its slot is ``cut``, ``start``, ``finish``,
    read ``own`` and ``arrived``.  They may be read until the next ``start``.  Two slots take turns
    where neighbours read them in place, so ``packed`` is another tensor after every ``finish``.

    Making one and ``close`` are collective.

    Args:
        slots: Where the agent's message is put, in turn; flat tensors of one length and dtype.
        routes: Between them they reach every neighbour once.
        waiting: How the neighbours' messages are waited for.
    """

    slot: int
    """Where the agent's next message is put; ``finish`` turns to the next."""
    packed: Tensor
    """That slot, to be filled."""
    own: Tensor
    """The message that was started last."""
    arrived: Sequence[Tensor] = ()
    """The neighbours' messages, in the order of the links' sources."""

    def __init__(self, slots: Sequence[Tensor], routes: Sequence[Route], waiting: Waiting) -> None:
        self._slots, self._routes, self._waiting = slots, routes, waiting
        self.slot = 0
        self.packed = self.own = slots[0]
        self.nbytes = slots[0].nbytes
        """Bytes of a message."""
        self._running: Sequence[MPI.Request] = ()
        self._links: Links | None = None
        self._lying: dict[int, Sequence[Tensor]] = {}
        """By slot, where the neighbours' messages lie in its rounds over these links."""

    def cut(self, lengths: Sequence[int]) -> list[Sequence[Tensor]]:
        """Return every slot cut into parts of these lengths, one after the other."""
        return [slot.split_with_sizes(lengths) for slot in self._slots]

    def start(self, links: Links) -> None:
        """Send ``packed`` to the links' destinations and await what their sources send."""
        if links is not self._links:
            self._links, self._lying = links, {}
        self.own = self.packed
        running: list[MPI.Request] = []
        for route in self._routes:
            running += route.start(self.slot, links)
        self._running = running

    def over(self) -> bool:
        """Test once whether ``finish`` would return without waiting, and so help MPI along.

        Another thread may call it between ``start`` and ``finish`` while this one is not in MPI.
        """
        # One by one: MPICH 5.0's Testall refuses persistent collectives.
        self._running = [request for request in self._running if not request.Test()]
        return not self._running

    def finish(self) -> None:
        """Wait for the messages of all sources."""
        self._waiting.all(self._running)
        for route in self._routes:
            route.finish()
        if self.slot not in self._lying:
            self._lying[self.slot] = self._found()
        self.arrived = self._lying[self.slot]
        self.slot = (self.slot + 1) % len(self._slots)
        self.packed = self._slots[self.slot]

    def _found(self) -> list[Tensor]:
        assert self._links is not None
        found = {j: m for route in self._routes for j, m in route.arrived(self.slot).items()}
        return [found[j] for j in self._links.sources]

    def close(self) -> None:
        """Free requests and windows; nothing that was read here may be read any more."""
        for route in self._routes:
            route.close()
        self.arrived, self._lying = (), {}
