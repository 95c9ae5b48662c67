"""What is timed: averaging rounds by every transport, and what they are to be seen beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import torch

from sundsbo_mpi.bench.parts import ALL
from sundsbo_mpi.bench.record import NOTHING, Key
from sundsbo_mpi.bench.timing import Case
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.agreement import jointly
from sundsbo_mpi.comm.averaging import average_over
from sundsbo_mpi.comm.bare import BareExchange, BareSum
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.transports import ONE_BY_ONE, TRANSPORTS
from sundsbo_mpi.comm.transports.network import Wires
from sundsbo_mpi.comm.transports.staging import layer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from sundsbo_mpi.bench.parts import Part
    from sundsbo_mpi.comm.node import Local
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.comm.transports.exchange import Connection
    from sundsbo_mpi.topology import Links

HOST, STAGED, DIRECT = "host", "device", "direct"
"""Where the buffers are: in the host's memory, or a GPU's, from which the program or MPI itself
moves them."""
ROUND, EXCHANGE, ALLREDUCE, MEMCPY, MIX = "round", "exchange", "allreduce", "memcpy", "mix"
ITEMSIZE = 4
"""Bytes of a float32, in which all messages are."""
BLOCKING, NONBLOCKING = "mpi-blocking", "mpi-nonblocking"


class Carried:
    """What the rounds over all links of a topology travelled over; the same on all ranks."""

    def __init__(self) -> None:
        self.notes: dict[str, None] = {}
        """What the user must know about the transports' choices, once each."""
        self._routes: dict[str, dict[str, None]] = {}

    def note(self, transport: str, buffers: str, network: Connection) -> None:
        """Keep what a network that was timed says of itself."""
        name = transport if buffers == HOST else f"{transport}, {buffers}"
        self._routes.setdefault(name, {})[network.description] = None
        self.notes |= dict.fromkeys(network.notes)

    def routes(self) -> dict[str, str]:
        """Return by transport and buffers what it came to, which may depend on the size."""
        return {name: " or ".join(found) for name, found in self._routes.items()}


@dataclass(frozen=True)
class Ground:
    """Where and on what is measured."""

    local: Local
    tally: Tally
    devices: Mapping[str, torch.device]
    """By name of the buffers."""
    repeats: int
    carried: Carried = field(default_factory=Carried)
    """Filled as rounds are timed."""

    def ones(self, buffers: str, length: int) -> Tensor:
        """Return a vector to be sent."""
        return torch.ones(length, dtype=torch.float32, device=self.devices[buffers])

    def wires(self, transport: str, buffers: str, length: int) -> Wires:
        """Return what to ask of the links for messages of a length."""
        return Wires(
            transport,
            ITEMSIZE * length,
            layer_of(self.devices[buffers]),
            direct=buffers == DIRECT,
            waiting=self.local.waiting,
        )

    def clock(self, buffers: str) -> Clock:
        """Return a clock that waits for a GPU where there is one."""
        on_gpu = self.devices[buffers].type == "cuda"
        return Clock(torch.cuda.synchronize if on_gpu else None)


def averaging(
    ground: Ground, part: Part, lengths: Sequence[int], to_close: ExitStack
) -> dict[tuple[str, str], Case]:
    """Return rounds of these lengths, one after the other, by transport and buffers; collective."""
    found = {}
    vectors = {  # which rounds only read
        buffers: {length: ground.ones(buffers, length) for length in set(lengths)}
        for buffers in ground.devices
    }
    for transport, buffers in product(TRANSPORTS, ground.devices):
        if buffers == DIRECT and transport != ONE_BY_ONE:
            continue  # any transport of device buffers is that one
        clock = ground.clock(buffers)
        wires = ground.wires(transport, buffers, max(lengths))
        plan = partial(Gossip, ground.local.comm, part, clock, wires)
        gossip = jointly(ground.tally, plan)
        to_close.callback(gossip.close)
        sent = [vectors[buffers][length] for length in lengths]
        found[transport, buffers] = Case(_rounds(gossip, sent), clock, gossip.network)
    return found


def _rounds(gossip: Gossip, vectors: Sequence[Tensor]) -> Callable[[], None]:
    def run() -> None:
        for vector in vectors:
            gossip.average((vector,))

    return run


@contextmanager
def of_network(ground: Ground, part: Part, name: str, length: int) -> Iterator[dict[Key, Case]]:
    """Plan all that is timed on a network for one length of messages; collective."""
    with ExitStack() as to_close:
        cases: dict[Key, Case] = {}
        if len(part.edges()):
            for (transport, buffers), case in averaging(ground, part, [length], to_close).items():
                cases[Key(ROUND, transport, buffers, name)] = case
            cases |= _bare(ground, part.links(ground.tally.agent), name, length, to_close)
        if name == ALL:
            cases |= _beside(ground, part.links(ground.tally.agent), length)
        yield cases


def _bare(
    ground: Ground, links: Links, name: str, length: int, to_close: ExitStack
) -> dict[Key, Case]:
    exchange = BareExchange(ground.local.comm, list(links.sources), links.destinations, length)
    to_close.callback(exchange.close)
    return {
        Key(EXCHANGE, BLOCKING, HOST, name): Case(exchange.blocking),
        Key(EXCHANGE, NONBLOCKING, HOST, name): Case(exchange.nonblocking),
    }


def _beside(ground: Ground, links: Links, length: int) -> dict[Key, Case]:
    summed = BareSum(ground.local.comm, length)
    cases = {Key(ALLREDUCE, NOTHING, HOST, NOTHING): Case(summed.add)}
    for buffers in ground.devices.keys() - {DIRECT}:
        own, copy = ground.ones(buffers, length), ground.ones(buffers, length)
        arrived = [ground.ones(buffers, length) for _ in links.sources]
        settle = ground.clock(buffers).settle
        work: dict[str, Callable[[], object]] = {
            MEMCPY: partial(copy.copy_, own),
            MIX: partial(average_over(links), own, arrived),
        }
        for what, run in work.items():
            case = Case(run if settle is None else _settled(run, settle))
            cases[Key(what, NOTHING, buffers, NOTHING)] = case
    return cases


def _settled(run: Callable[[], object], settle: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        run()
        settle()

    return both
