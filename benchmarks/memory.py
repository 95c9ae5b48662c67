"""Resident memory of an agent beside that of importing torch, mpi4py and h5py.

    python benchmarks/memory.py [--agents 2] [--iterations 10000] [--method sun-dsbo-gt]

One MPI job on hyper-cleaning at the paper's size.  Reports, over the agents: the peak after the
imports, the memory with the program and its data, the peak of the run above that as a number of
vectors of length d_x + 2 d_y, what of that is resident after a tenth, a fifth, a half and all of
the iterations, and what the last nine tenths of them added to the heap in use.

The heap in use does not grow: from the 1,000th iteration to the 10,000th by less than 10 kB.  What
is resident still gains up to 3 MB, ever more seldom and in steps of a vector or less, which stay in
the C library's free list: blocks of a few sizes that come and go leave holes, and now and then a
vector fits into none.  One run of GT took 2.7 MB before the 2,000th iteration, 0.4 MB before the
7,000th and nothing after; another 0.6 MB before the 2,000th and nothing after.  Without
``prepare_heap`` the heap swings by 10 MB instead; malloc_trim gives 17 MB back.  Python's own
lists of free tuples fill for 1,200 iterations, which takes 0.2 MB.

Needs glibc 2.33 or newer.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click
from reporting import SETTINGS, report, spread

from sundsbo_mpi.batch.starting import mpirun

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning
    from sundsbo_mpi.topology import Weights

HERE = Path(__file__).resolve()
UNITS = {"imports": "MiB, imports alone", "start": "MiB, program and data", "peak": "MiB, peak"}
PARTS = (10, 5, 2, 1)
"""A tenth of the iterations, a fifth, ...: when memory is looked at."""
MIB = 1024**2


class Heap(ctypes.Structure):
    """What glibc's mallinfo2 tells."""

    NAMES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_: ClassVar = [(name, ctypes.c_size_t) for name in NAMES.split()]


def in_use(library: ctypes.CDLL) -> float:
    """Return what is allocated now, in MiB: the heap without its free blocks."""
    heap = library.mallinfo2()
    return float(heap.uordblks + heap.hblkhd) / MIB


def peak() -> float:
    """Return the largest resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident() -> float:
    """Return the resident memory now, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / MIB


def inside(method: str, iterations: int) -> None:
    """Run one agent; rank 0 prints the numbers of all, in MiB."""
    import h5py  # noqa: F401
    import torch
    from mpi4py import MPI

    found = {"imports": peak()}
    from workload import PAYLOAD, ring, task

    from sundsbo_mpi.heap import prepare_heap

    torch.set_num_threads(1)
    prepare_heap()
    comm = MPI.COMM_WORLD
    weights = comm.bcast(ring(comm.size) if comm.rank == 0 else None)  # as a run hands them out
    problem = task(comm.rank)
    found |= {"start": resident(), "vector": PAYLOAD * 4 / MIB}
    seen = run(comm, weights, problem, method, iterations)
    found["peak"] = peak()
    found |= {f"at {done}": memory - found["start"] for done, (memory, _) in seen.items()}
    found["growth"] = seen[iterations][1] - seen[iterations // PARTS[0]][1]
    everyone = comm.gather(found)
    if everyone is not None:
        print(json.dumps(everyone), flush=True)


def moments(iterations: int) -> list[int]:
    """Return after how many iterations memory is looked at."""
    return [iterations // part for part in PARTS]


def run(
    comm: MPI.Intracomm, weights: Weights, problem: HyperCleaning, method: str, iterations: int
) -> dict[int, tuple[float, float]]:
    """Run one agent; return its resident memory and its heap in use, in MiB, by iterations done."""
    from workload import algorithm

    from sundsbo_mpi.agent import Agent, Observer
    from sundsbo_mpi.clock import Clock
    from sundsbo_mpi.comm.gossip import Gossip
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.ranks.control import Control

    seen, due, library = {}, moments(iterations), ctypes.CDLL(None)
    library.mallinfo2.restype = Heap

    class Onlooker(Observer):
        def advance(self, done: int) -> None:
            if done in due:
                seen[done] = resident(), in_use(library)

    tally, clock = Tally(comm), Clock()
    one = Agent(
        task=problem,
        algorithm=algorithm(method, comm.size, iterations),
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
@click.option("--iterations", type=click.IntRange(min=PARTS[0]), default=10_000, show_default=True)
@click.option("--method", default="sun-dsbo-gt", show_default=True)
@click.option("--inside", "is_inside", is_flag=True, hidden=True)
def main(agents: int, iterations: int, method: str, is_inside: bool) -> None:
    """Run the job and say what it took."""
    if is_inside:
        return inside(method, iterations)
    start = [mpirun(), "-n", agents]
    job = [
        sys.executable,
        "-m",
        "mpi4py",
        HERE,
        "--inside",
        "--iterations",
        iterations,
        "--method",
        method,
    ]
    said = subprocess.check_output(
        list(map(str, [*start, *job])), env=os.environ | SETTINGS, encoding="utf-8"
    )
    everyone = json.loads(next(line for line in said.splitlines() if line.startswith("[{")))
    above = [(agent["peak"] - agent["start"]) / agent["vector"] for agent in everyone]
    report(
        f"memory of {agents} agents over {iterations} iterations of {method}",
        {title: spread([agent[key] for agent in everyone]) for key, title in UNITS.items()},
        {"peak - (program and data), in vectors d_x + 2 d_y": spread(above)},
        {
            f"MiB above program and data, after {done}": spread([a[f"at {done}"] for a in everyone])
            for done in moments(iterations)
        },
        {"MiB, heap in use, added by the last 9/10": spread([a["growth"] for a in everyone])},
    )
    return None


if __name__ == "__main__":
    main()
