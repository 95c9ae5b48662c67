"""The MPI job of iteration.py and scaling.py: agents that do several variants in turn.

    mpirun -n 10 python -m mpi4py benchmarks/in_mpi.py [--iterations 40] [--only NAME]...

Rank 0 prints, as JSON, the seconds of an iteration of each variant and the processor seconds of one
agent in it: the mean over the agents, of a block of iterations that all begin together.  "Apart"
are SE's gradients and steps and nothing else, what as many processes need at least; "by hand" are
loops over shared memory, with the program's directions (``by_hand.py``); "twice" is SE that does
every round twice.  The variants take turns, TURNS of them; the figures are means over their turns.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import by_hand
import click
import numpy as np
import torch
from mpi4py import MPI
from windows import Windows
from workload import TURNS, WARM_UP, algorithm, ring, task

from sundsbo_mpi.agent import Agent, Observer, Position
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.node import local
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports.network import Wires
from sundsbo_mpi.heap import prepare_heap
from sundsbo_mpi.outgoing import Outgoing
from sundsbo_mpi.ranks.control import Control


class Alone(Gossip):
    """Neighbours that are never asked: what is sent comes back as it is.

    The word on whether to go on is exchanged all the same.
    """

    def post(self, outgoing: Outgoing) -> None:
        """Keep the message."""
        self._kept = outgoing.tensors

    def collect(self) -> tuple[torch.Tensor, ...]:
        """Hand it back."""
        return self._kept


class Twice(Gossip):
    """Averages the average once more: what a method of two rounds needs at least."""

    def collect(self) -> tuple[torch.Tensor, ...]:
        """Do a second round."""
        self.post(Outgoing(super().collect()))
        return super().collect()


APART = "se apart"
BY_HAND = {
    "se by hand": by_hand.se,
    "se by hand, watched": by_hand.watched,
    "gt by hand": by_hand.gt,
}
VARIANTS: dict[str, tuple[str, str, type[Gossip]]] = {
    "se shared": ("sun-dsbo-se", "shared", Gossip),
    "se messages": ("sun-dsbo-se", "persistent", Gossip),
    "se alone": ("sun-dsbo-se", "persistent", Alone),
    APART: ("sun-dsbo-se", "persistent", Alone),
    "se by hand": ("sun-dsbo-se", "persistent", Alone),
    "se by hand, watched": ("sun-dsbo-se", "persistent", Alone),
    "se twice shared": ("sun-dsbo-se", "shared", Twice),
    "se twice messages": ("sun-dsbo-se", "persistent", Twice),
    "gt shared": ("sun-dsbo-gt", "shared", Gossip),
    "gt messages": ("sun-dsbo-gt", "persistent", Gossip),
    "gt by hand": ("sun-dsbo-gt", "persistent", Alone),
}
"""A method, its transport, and what does its rounds, in the first iterations at least."""


def agent(comm: MPI.Intracomm, name: str, iterations: int) -> Agent:
    """Build this rank's agent for a variant."""
    method, transport, network = VARIANTS[name]
    waiting = local(comm).waiting
    tally, clock = Tally(comm, waiting), Clock()
    return Agent(
        task=task(comm.rank),
        algorithm=algorithm(method, comm.size, iterations),
        gossip=network(comm, ring(comm.size), clock, Wires(transport, waiting=waiting)),
        tally=tally,
        control=Control(tally),
        clock=clock,
        iterations=iterations,
        eval_every=iterations,
    )


class Standing(Observer):
    """Remembers where the agent stands."""

    at: Position

    def stand(self, at: Position) -> None:
        """Remember it."""
        self.at = at


def warmed(one: Agent) -> Position:
    """Do the first iterations; return where to go on, with no iteration done."""
    standing = Standing()
    replace(one, iterations=WARM_UP).run(standing)
    return standing.at._replace(done=0)


def work(name: str, one: Agent, begin: Position, to_close: ExitStack) -> Callable[[], object]:
    """Return what does all iterations of a variant."""
    if name == APART:
        return partial(by_hand.apart, one, begin)
    if name not in BY_HAND:
        return partial(one.run, Observer(), begin)
    comm = MPI.COMM_WORLD
    length = sum(len(v) for v in begin.w.values())
    windows = Windows(comm, ring(comm.size).links(comm.rank, 0), length)
    to_close.callback(windows.close)
    return partial(BY_HAND[name], one, begin, windows)


def measure(
    comm: MPI.Intracomm, iterate: Callable[[], object], iterations: int
) -> tuple[float, float]:
    """Do all iterations; return seconds of one and the agents' mean processor seconds in it."""
    comm.Barrier()
    began, worked = time.perf_counter(), time.process_time()
    iterate()
    worked = time.process_time() - worked
    comm.Barrier()
    elapsed = time.perf_counter() - began
    spent = np.array([elapsed, worked]) / iterations
    comm.Allreduce(MPI.IN_PLACE, spent, MPI.SUM)
    return tuple(spent / comm.size)


@click.command()
@click.option("--iterations", default=40, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(VARIANTS)))
def main(iterations: int, only: tuple[str, ...]) -> None:
    """Do all variants a few iterations to warm up, and then in turn those that are measured."""
    comm = MPI.COMM_WORLD
    torch.set_num_threads(1)
    prepare_heap()
    agents = {name: agent(comm, name, iterations) for name in only or VARIANTS}
    to_close = ExitStack()
    works = {name: work(name, one, warmed(one), to_close) for name, one in agents.items()}
    turns = [
        {name: measure(comm, iterate, iterations) for name, iterate in works.items()}
        for _ in range(TURNS)
    ]
    to_close.close()
    for one in agents.values():
        one.close()
    found = {}
    for name in agents:
        seconds, processor = np.mean([turn[name] for turn in turns], axis=0)
        found |= {name: seconds, f"{name}, processor": processor}
    if comm.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
