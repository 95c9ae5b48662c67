"""A round of averaging beside bare MPI with the same sum, and beside disropt where it is installed.

    mpirun -n 10 python -m mpi4py benchmarks/exchange.py [--repeats 15] [--rounds 20]

All agents on a ring, float32, messages of 238,510 numbers (y of the network 784-300-10) and of the
whole 527,020 of SUN-DSBO-SE.  The variants take turns within each repetition:

- bare: one blocking Neighbor_alltoallv of the message and mul, add, add in torch;
- messages, shared: ``Gossip.average`` by the transports persistent and shared;
- disropt: ``Consensus.iterate_run`` of the package disropt (pip install disropt), y only.

Rank 0 prints the ratios of each repetition, of the slowest rank: median and spread.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click
import numpy as np
import torch
from mpi4py import MPI
from reporting import report, spread
from workload import PAYLOAD, Y, ring

from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm.bare import BareExchange
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.transports.network import Wires
from sundsbo_mpi.heap import keep_freed_memory
from sundsbo_mpi.topology import Weights

SIZES = {"y": Y, "payload": PAYLOAD}
TRANSPORTS = {"messages": "persistent", "shared": "shared"}
Average = Callable[[], object]


def bare(comm: MPI.Intracomm, weights: Weights, length: int) -> Average:
    """Return a round of MPI and torch without the program."""
    links = weights.links(comm.rank, 0)
    exchange = BareExchange(comm, tuple(links.sources), links.destinations, length)
    own = torch.from_numpy(exchange.sent)
    rows = torch.from_numpy(exchange.received).reshape(-1, length)
    mixed = torch.empty(length)

    def average() -> None:
        exchange.blocking()
        torch.mul(own, links.own, out=mixed)
        for w_ij, v_j in zip(links.sources.values(), rows, strict=True):
            mixed.add_(v_j, alpha=w_ij)

    return average


def program(comm: MPI.Intracomm, weights: Weights, length: int, transport: str) -> Average:
    """Return a round of the program."""
    gossip = Gossip(comm, weights, Clock(), Wires(transport))
    v = (torch.ones(length),)
    return lambda: gossip.average(v)


def disropt(comm: MPI.Intracomm, weights: Weights, length: int) -> Average | None:
    """Return a round of disropt's consensus, or None where it is not installed."""
    try:
        from disropt.agents import Agent
        from disropt.algorithms import Consensus
    except ImportError:
        return None
    neighbours = dict(weights.links(comm.rank, 0).sources)
    agent = Agent(list(neighbours), list(neighbours), in_weights=neighbours)
    return Consensus(agent, np.ones(length, dtype=np.float32)).iterate_run


def variants(comm: MPI.Intracomm) -> dict[str, Average]:
    """Plan everything that is measured."""
    weights = ring(comm.size)
    found: dict[str, Average] = {}
    for size, length in SIZES.items():
        found[f"bare {size}"] = bare(comm, weights, length)
        for name, transport in TRANSPORTS.items():
            found[f"{name} {size}"] = program(comm, weights, length, transport)
    peer = disropt(comm, weights, Y)
    return found | ({"disropt y": peer} if peer else {})


def seconds(comm: MPI.Intracomm, average: Average, rounds: int) -> float:
    """Return the seconds of a round on the slowest rank."""
    comm.Barrier()
    began = time.perf_counter()
    for _ in range(rounds):
        average()
    return comm.allreduce((time.perf_counter() - began) / rounds, MPI.MAX)


@click.command()
@click.option("--repeats", default=15, show_default=True)
@click.option("--rounds", default=20, show_default=True)
def main(repeats: int, rounds: int) -> None:
    """Compare rounds of averaging."""
    comm = MPI.COMM_WORLD
    torch.set_num_threads(1)
    keep_freed_memory()
    planned = variants(comm)
    for average in planned.values():
        seconds(comm, average, 3)
    found = [
        {name: seconds(comm, average, rounds) for name, average in planned.items()}
        for _ in range(repeats)
    ]
    if comm.rank:
        return
    ratios = {}
    for beside in ("bare y", "bare payload", "disropt y"):
        size = beside.split()[-1]
        for name in TRANSPORTS if beside in planned else ():
            pairs = [r[f"{name} {size}"] / r[beside] for r in found]
            ratios[f"{name} / {beside}"] = spread(pairs)
    milliseconds = {f"{name}, ms": spread([1e3 * r[name] for r in found]) for name in planned}
    report("exchange", ratios, milliseconds)


if __name__ == "__main__":
    main()
