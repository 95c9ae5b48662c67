"""The MPI job of iteration.py and scaling.py: agents that do a variant whenever they are told to.

    mpirun -n 10 python -m mpi4py benchmarks/in_mpi.py --socket PATH --only NAME [--only NAME]...

Every rank tells the seconds of an iteration and its processor seconds in it, of a block of
iterations that all ranks begin together (``jobs.py``).  "Apart" are SE's gradients and steps and
nothing else, what as many processes need at least; "by hand" are loops with the program's
directions (``loops_by_hand.py``); "twice" is SE that does every round twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import loops_by_hand
import torch
from jobs import measured, serve, to_serve
from mpi4py import MPI
from rounds_by_hand import Messages, Windows
from workload import WARM_UP, algorithm, ring, task

from sundsbo_mpi.agent import Agent, Observer, Position
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.node import local
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports.network import Wires
from sundsbo_mpi.comm.world import start_mpi
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
    "se by hand": ("sun-dsbo-se", loops_by_hand.se, Windows),
    "se by hand, watched": ("sun-dsbo-se", loops_by_hand.watched, Windows),
    "gt by hand": ("sun-dsbo-gt", loops_by_hand.gt, Windows),
    "se by hand, messages": ("sun-dsbo-se", loops_by_hand.se, Messages),
    "gt by hand, messages": ("sun-dsbo-gt", loops_by_hand.gt, Messages),
}
"""A method, the loop that is written out, and what does its rounds."""
VARIANTS: dict[str, tuple[str, str, type[Gossip]]] = {
    "se shared": ("sun-dsbo-se", "shared", Gossip),
    "se messages": ("sun-dsbo-se", "persistent", Gossip),
    "se alone": ("sun-dsbo-se", "persistent", Alone),
    APART: ("sun-dsbo-se", "persistent", Alone),
    "se twice shared": ("sun-dsbo-se", "shared", Twice),
    "se twice messages": ("sun-dsbo-se", "persistent", Twice),
    "gt shared": ("sun-dsbo-gt", "shared", Gossip),
    "gt messages": ("sun-dsbo-gt", "persistent", Gossip),
} | {name: (method, "persistent", Alone) for name, (method, _, _) in BY_HAND.items()}
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


def work(name: str, one: Agent, begin: Position, to_close: ExitStack) -> Callable[[int], object]:
    """Return what does so many iterations of a variant."""
    if name == APART:
        loop = loops_by_hand.apart
    elif name in BY_HAND:
        comm, (_, by_hand, kind) = MPI.COMM_WORLD, BY_HAND[name]
        length = sum(len(v) for v in begin.w.values())
        rounds = kind(comm, ring(comm.size).links(comm.rank, 0), length)
        to_close.callback(rounds.close)
        loop = partial(by_hand, rounds=rounds)
    else:
        return lambda iterations: replace(one, iterations=iterations).run(Observer(), begin)
    return lambda iterations: loop(replace(one, iterations=iterations), begin)


@click.command()
@click.option("--iterations", default=40, show_default=True, help="Of a turn.")
@click.option("--only", "names", multiple=True, required=True, type=click.Choice(list(VARIANTS)))
@to_serve
def main(iterations: int, names: tuple[str, ...], path: Path) -> None:
    """Do all variants a few iterations to warm up, and then those that are asked for."""
    comm = start_mpi()
    torch.set_num_threads(1)
    prepare_heap()
    agents = {name: agent(comm, name, iterations) for name in names}
    to_close = ExitStack()
    works = {name: work(name, one, warmed(one), to_close) for name, one in agents.items()}
    serve(path, lambda name: measured(works[name], iterations, comm.Barrier))
    to_close.close()  # not where a rank has failed: the others would not come
    for one in agents.values():
        one.close()


if __name__ == "__main__":
    main()
