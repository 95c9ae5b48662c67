"""Resident memory of an agent beside that of importing torch, mpi4py and h5py.

    python benchmarks/memory.py [--agents 2] [--iterations 10000]

One MPI job of SUN-DSBO-GT on hyper-cleaning at the paper's size.  Reports, over the
agents: the peak after the imports, the memory with the program and its data, the peak of the run
above that as a number of vectors of length d_x + 2 d_y, and what the last nine tenths of the
iterations added.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from reporting import SETTINGS, report, spread

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning
    from sundsbo_mpi.topology import Weights

HERE = Path(__file__).resolve()
UNITS = {"imports": "MB, imports alone", "start": "MB, program and data", "peak": "MB, peak"}
MEGABYTE = 1024**2


def peak() -> float:
    """Return the largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident() -> float:
    """Return the resident memory now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / MEGABYTE


def inside(iterations: int) -> None:
    """Run one agent; rank 0 prints the numbers of all, in MB."""
    import h5py  # noqa: F401
    import torch
    from mpi4py import MPI

    found = {"imports": peak()}
    from workload import PAYLOAD, ring, task

    from sundsbo_mpi.heap import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    comm = MPI.COMM_WORLD
    weights = comm.bcast(ring(comm.size) if comm.rank == 0 else None)  # as a run hands them out
    problem = task(comm.rank)
    found |= {"start": resident(), "vector": PAYLOAD * 4 / MEGABYTE}
    seen = run(comm, weights, problem, iterations)
    found |= {"peak": peak(), "growth": seen[iterations - 1] - seen[iterations // 10]}
    everyone = comm.gather(found)
    if everyone is not None:
        print(json.dumps(everyone), flush=True)


def run(
    comm: MPI.Intracomm, weights: Weights, problem: HyperCleaning, iterations: int
) -> dict[int, float]:
    """Run one agent; return its resident memory in MB after a tenth and at the end."""
    from workload import algorithm

    from sundsbo_mpi.agent import Agent, Observer
    from sundsbo_mpi.clock import Clock
    from sundsbo_mpi.comm.gossip import Gossip
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.ranks.control import Control

    seen = {}

    class Onlooker(Observer):
        def advance(self, done: int) -> None:
            if done in (iterations // 10, iterations - 1):
                seen[done] = resident()

    tally, clock = Tally(comm), Clock()
    one = Agent(
        task=problem,
        algorithm=algorithm("sun-dsbo-gt", comm.size, iterations),
        gossip=Gossip(comm, weights, clock),
        tally=tally,
        control=Control(tally),
        clock=clock,
        iterations=iterations,
        eval_every=iterations,
    )
    one.run(Onlooker())
    one.close()
    return seen


@click.command()
@click.option("--agents", default=2, show_default=True)
@click.option("--iterations", default=10_000, show_default=True)
@click.option("--inside", "is_inside", is_flag=True, hidden=True)
def main(agents: int, iterations: int, is_inside: bool) -> None:
    """Run the job and say what it took."""
    if is_inside:
        return inside(iterations)
    mpirun = [Path(sys.executable).with_name("mpirun"), "-n", agents]
    job = [sys.executable, "-m", "mpi4py", HERE, "--inside", "--iterations", iterations]
    said = subprocess.check_output(
        list(map(str, [*mpirun, *job])), env=os.environ | SETTINGS, encoding="utf-8"
    )
    everyone = json.loads(next(line for line in said.splitlines() if line.startswith("[{")))
    above = [(agent["peak"] - agent["start"]) / agent["vector"] for agent in everyone]
    report(
        f"memory of {agents} agents over {iterations} iterations",
        {title: spread([agent[key] for agent in everyone]) for key, title in UNITS.items()},
        {"peak - (program and data), in vectors d_x + 2 d_y": spread(above)},
        {"MB, growth over the last 9/10": spread([agent["growth"] for agent in everyone])},
    )
    return None


if __name__ == "__main__":
    main()
