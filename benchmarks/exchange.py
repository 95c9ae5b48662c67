"""A step and its averaging beside bare MPI in torch, and beside disropt where it is installed.

    mpirun -n 10 python -m mpi4py benchmarks/exchange.py [--repeats 15] [--rounds 20]

All agents on a ring, float32, vectors of 238,510 numbers (y of the network 784-300-10) and of the
whole 527,020 of SUN-DSBO-SE.  A round computes sum_j w_ij (s_j - lam D_j), as technique se does.
What is set beside one another, of one size and kind of round, takes turns within each repetition,
and the vectors of the next are made when those of the last are gone:

- bare: the step into the send buffer, one blocking Neighbor_alltoallv, and mul, add, add in torch;
- messages, shared: the same by ``Gossip`` and its transports persistent and shared;
- windows: by hand over shared memory (``rounds_by_hand.py``), the least that shared can take;
- disropt: ``Consensus.iterate_run`` of the package disropt (pip install disropt), after the step in
  numpy, y only.

Beside them the average alone, of a vector that was there before, which the program must copy into
the message: bare MPI has it in its buffer, and "copied" is bare MPI that has not.  Rank 0 prints
the ratios of each repetition, of the slowest rank: median and spread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from itertools import product

import click
import numpy as np
import torch
from mpi4py import MPI
from reporting import report, spread
from rounds_by_hand import Windows
from workload import PAYLOAD, Y, ring

from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.bare import BareExchange
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.node import local
from sundsbo_mpi.comm.transports.network import Wires
from sundsbo_mpi.heap import prepare_heap
from sundsbo_mpi.outgoing import Difference, Outgoing
from sundsbo_mpi.topology import Weights

SIZES = {"y": Y, "payload": PAYLOAD}
TRANSPORTS = {"messages": "persistent", "shared": "shared"}
LAM = 0.1
STEP, AVERAGE = "step", "average"
Round = Callable[[], object]
Filling = Callable[[torch.Tensor], object]
Found = list[dict[str, float]]


def step(length: int) -> Filling:
    """Return what writes s - lam D."""
    s, D = torch.ones(2, length)
    return lambda own: torch.sub(s, D, alpha=LAM, out=own)


def copy(length: int) -> Filling:
    """Return what writes s."""
    s = torch.ones(length)
    return lambda own: own.copy_(s)


def nothing(_length: int) -> Filling:
    """Return what leaves a buffer as it is."""
    return lambda own: own


def bare(
    comm: MPI.Intracomm,
    weights: Weights,
    length: int,
    to_close: ExitStack,
    fill: Filling,
) -> Round:
    """Return a round of MPI and torch without the program, with what fills its send buffer."""
    links = weights.links(comm.rank, 0)
    exchange = BareExchange(comm, tuple(links.sources), links.destinations, length)
    to_close.callback(exchange.close)
    own = torch.from_numpy(exchange.sent)
    rows = torch.from_numpy(exchange.received).reshape(-1, length)
    mixed = torch.empty(length)

    def average() -> None:
        fill(own)
        exchange.blocking()
        torch.mul(own, links.own, out=mixed)
        for w_ij, v_j in zip(links.sources.values(), rows, strict=True):
            mixed.add_(v_j, alpha=w_ij)

    return average


def program(gossip: Gossip, length: int, *, step: bool) -> Round:
    """Return a round of the program."""
    s, D = torch.ones(2, length)
    outgoing = Outgoing((Difference(s, LAM, D) if step else s,))

    def average() -> None:
        gossip.post(outgoing)
        gossip.collect()

    return average


def disropt(comm: MPI.Intracomm, weights: Weights, *, step: bool) -> Round | None:
    """Return a round of disropt's consensus, or None where it is not installed."""
    try:
        from disropt.agents import Agent
        from disropt.algorithms import Consensus
    except ImportError:
        return None
    neighbours = dict(weights.links(comm.rank, 0).sources)
    agent = Agent(list(neighbours), list(neighbours), in_weights=neighbours)
    D = np.ones(Y, dtype=np.float32)
    consensus = Consensus(agent, D)

    def average() -> None:
        if step:
            consensus.x = consensus.x - np.float32(LAM) * D
        consensus.iterate_run()

    return average


def variants(comm: MPI.Intracomm, size: str, what: str, to_close: ExitStack) -> dict[str, Round]:
    """Plan what is set beside one another, by kind, size and what a round does."""
    weights, length, stepping = ring(comm.size), SIZES[size], what == STEP
    filled = {"bare": step} if stepping else {"bare": nothing, "copied": copy}
    found = {
        f"{name} {size} {what}": bare(comm, weights, length, to_close, filling(length))
        for name, filling in filled.items()
    }
    filling = step if stepping else copy
    by_hand = Windows(comm, weights.links(comm.rank, 0), length)
    to_close.callback(by_hand.close)
    found[f"windows {size} {what}"] = partial(by_hand.average, filling(length))
    waiting = local(comm).waiting
    for name, transport in TRANSPORTS.items():
        gossip = Gossip(comm, weights, Clock(), Wires(transport, waiting=waiting))
        to_close.callback(gossip.close)
        found[f"{name} {size} {what}"] = program(gossip, length, step=stepping)
    if length == Y and (peer := disropt(comm, weights, step=stepping)):
        found[f"disropt {size} {what}"] = peer
    return found


def measured(comm: MPI.Intracomm, planned: dict[str, Round], repeats: int, rounds: int) -> Found:
    """Return the seconds of a round of each in every repetition, in which they take turns."""
    for average in planned.values():
        seconds(comm, average, 3)
    return [
        {name: seconds(comm, average, rounds) for name, average in planned.items()}
        for _ in range(repeats)
    ]


def seconds(comm: MPI.Intracomm, average: Round, rounds: int) -> float:
    """Return the seconds of a round on the slowest rank."""
    comm.Barrier()
    began = time.perf_counter()
    for _ in range(rounds):
        average()
    return comm.allreduce((time.perf_counter() - began) / rounds, MPI.MAX)


def ratios(found: Found) -> dict[str, tuple[float, ...]]:
    """Return the seconds of the program, and by hand, beside the others' of the same work."""
    pairs = {}
    for beside, name in product(found[0], (*TRANSPORTS, "windows")):
        kind, work = beside.split(" ", 1)
        if kind not in (*TRANSPORTS, name):
            pairs[f"{name} / {beside}"] = spread([r[f"{name} {work}"] / r[beside] for r in found])
    return pairs


@click.command()
@click.option("--repeats", default=15, show_default=True)
@click.option("--rounds", default=20, show_default=True)
def main(repeats: int, rounds: int) -> None:
    """Compare rounds of averaging."""
    comm = MPI.COMM_WORLD
    torch.set_num_threads(1)
    prepare_heap()
    figures, milliseconds = {}, {}
    for what, size in product((STEP, AVERAGE), SIZES):
        with ExitStack() as to_close:
            found = measured(comm, variants(comm, size, what, to_close), repeats, rounds)
        figures |= ratios(found)
        milliseconds |= {f"{name}, ms": spread([1e3 * r[name] for r in found]) for name in found[0]}
    if comm.rank == 0:
        report("exchange", figures, milliseconds)


if __name__ == "__main__":
    main()
