"""Is the exchange over TCP hidden behind the gradient?  Hosts are network namespaces (root only).

    python benchmarks/overlap.py [--technique dgd] [--hosts 2] [--rate 500mbit] [--repeats 5]

One MPI job with one agent on each host does in turn, in every repetition: gradients alone, the
exchange alone, an iteration whose message needs the gradient (se beside dgd, ed beside extra,
semi-gt beside non-atc-gt: they send as much), and one whose message does not, without and with the
thread that keeps messages moving.  Beside them, gradients while as many bytes cross plain sockets:
what TCP, and the imitation of wires, takes of the same processors without MPI or the program.  The
minibatch is chosen at the start so that gradient and exchange take equally long.  Prints how far
they came to that, the seconds, and their ratios to the larger of the two alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from reporting import SETTINGS, report, spread

from sundsbo_mpi.batch.starting import mpirun

if TYPE_CHECKING:
    from plain_sockets import PlainSockets

HERE = Path(__file__).resolve()
HOSTS_SH = HERE.with_name("hosts.sh")
FIRST_BATCH, LARGEST_BATCH = 100, 5_000
SEQUENTIAL = {"dgd": "se", "extra": "ed", "non-atc-gt": "semi-gt"}
"""Beside a technique whose message needs no gradient, one that sends as much and whose does."""
BALANCING = 5
"""Corrections of the batch: a gradient does not take twice as long on twice the samples."""
NETWORK = {
    "PRTE_MCA_plm_ssh_agent": str(HOSTS_SH),
    "PRTE_MCA_prte_if_include": "eth0",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl_tcp_if_include": "eth0",
}


def address(place: int) -> str:
    """Return that of a host, as hosts.sh gives it."""
    return f"10.79.0.{place + 1}"


class Bench:
    """What one rank does."""

    def __init__(self, technique: str, iterations: int) -> None:
        import torch

        from sundsbo_mpi.comm.world import start_mpi

        # First: the program's settings of MPI count, and the next import would initialise it.
        self.comm, self.technique, self.iterations = start_mpi(), technique, iterations
        from workload import ring

        from sundsbo_mpi.clock import Clock
        from sundsbo_mpi.comm.gossip import Gossip
        from sundsbo_mpi.comm.progress import Progress
        from sundsbo_mpi.heap import prepare_heap

        torch.set_num_threads(1)
        prepare_heap()
        self.gossip = Gossip(self.comm, ring(self.comm.size), Clock())
        self.progress = Progress(self.gossip.progress)
        self.batch = FIRST_BATCH
        for _ in range(BALANCING):
            scale = self.seconds(self.exchange()) / self.seconds(self.gradient())
            self.batch = int(min(max(10, self.batch * scale), LARGEST_BATCH))
        if self.batch == LARGEST_BATCH and self.comm.rank == 0:
            print("the exchange takes longer than any gradient here", file=sys.stderr, flush=True)

    def problem(self, technique: str) -> tuple:
        """Return a method with a technique for all variables, and a task with the batch."""
        from workload import algorithm, task

        techniques = dict.fromkeys(("x", "y", "theta"), technique)
        method = algorithm("sun-dsbo-se", self.comm.size, 100, **techniques)
        return task(self.comm.rank, batch=self.batch), method

    def gradient(self) -> Callable[[], None]:
        """Return what does the local work of an iteration."""
        task, algorithm = self.problem(self.technique)
        w, state = algorithm.start(task)

        def work() -> None:
            step, averaged = algorithm.step(task, 0, w, state), None
            while True:
                try:
                    outgoing = step.send(averaged)
                except StopIteration:
                    return
                outgoing.meanwhile()
                averaged = outgoing.tensors

        return work

    def exchange(self) -> Callable[[], object]:
        """Return what does the round of an iteration, and nothing else."""
        sent = self.message()
        return partial(self.gossip.average, sent)

    def message(self) -> tuple[Any, ...]:
        """Return the vectors of a round."""
        task, algorithm = self.problem(self.technique)
        sent: tuple[Any, ...] = next(algorithm.step(task, 0, *algorithm.start(task))).tensors
        return sent

    def sockets(self) -> PlainSockets:
        """Return what moves as many bytes as a round, without MPI."""
        from plain_sockets import PlainSockets
        from workload import ring

        sources = ring(self.comm.size).links(self.comm.rank, 0).sources
        size = sum(vector.nbytes for vector in self.message())
        return PlainSockets(self.comm, address(self.comm.rank), sources, size)

    def iteration(self, technique: str, moving: object) -> Callable[[], None]:
        """Return what does an iteration."""
        from sundsbo_mpi.agent import answer
        from sundsbo_mpi.clock import Clock

        task, algorithm = self.problem(technique)
        held, clock = list(algorithm.start(task)), Clock()

        def work() -> None:
            step = algorithm.step(task, 0, *held)
            held[:] = answer(step, self.gossip, clock, moving)

        return work

    def seconds(self, work: Callable[[], object]) -> float:
        """Return the seconds of doing something, of the slowest rank."""
        work()
        self.comm.Barrier()
        began = time.perf_counter()
        for _ in range(self.iterations):
            work()
        return max(self.comm.allgather((time.perf_counter() - began) / self.iterations))


def inside(technique: str, repeats: int, iterations: int) -> None:
    """Measure in turn; rank 0 prints a list of seconds for each variant."""
    from contextlib import nullcontext

    bench, sequential = Bench(technique, iterations), SEQUENTIAL[technique]
    sockets = bench.sockets()
    variants = {
        "gradient": bench.gradient(),
        "exchange": bench.exchange(),
        "gradient beside plain sockets": partial(sockets.beside, bench.gradient()),
        f"sequential ({sequential})": bench.iteration(sequential, nullcontext()),
        f"posted early ({technique})": bench.iteration(technique, nullcontext()),
        f"overlapped ({technique})": bench.iteration(technique, bench.progress),
    }
    found: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repeats):
        for name, work in variants.items():
            found[name].append(bench.seconds(work))
    sockets.close()
    bench.progress.close()
    bench.gossip.close()
    if bench.comm.rank == 0:
        print(json.dumps({"batch": bench.batch, "seconds": found}), flush=True)


@click.command()
@click.option("--technique", default="dgd", show_default=True, type=click.Choice(list(SEQUENTIAL)))
@click.option("--hosts", default=2, show_default=True)
@click.option("--rate", default="500mbit", show_default=True, help="Of each host's link.")
@click.option("--repeats", default=5, show_default=True)
@click.option("--iterations", default=10, show_default=True)
@click.option("--inside", "is_inside", is_flag=True, hidden=True)
def main(hosts: int, rate: str, is_inside: bool, **what: Any) -> None:
    """Make the hosts, run the job, remove the hosts."""
    if is_inside:
        return inside(**what)
    places = ",".join(f"{address(i)}:1" for i in range(hosts))
    start = [mpirun(), "-n", hosts, "--host", places]
    job = [sys.executable, "-m", "mpi4py", HERE, "--inside"]
    words = [word for name, value in what.items() for word in (f"--{name}", value)]
    command = [HOSTS_SH, address(0), *start, "--bind-to", "none", *job, *words]
    subprocess.run([HOSTS_SH, "down", str(hosts)], check=True)
    try:
        subprocess.run([HOSTS_SH, "up", str(hosts), rate], check=True)
        said = subprocess.check_output(
            list(map(str, command)),
            env=os.environ | SETTINGS | NETWORK,
            encoding="utf-8",
            errors="replace",
        )
    finally:
        subprocess.run([HOSTS_SH, "down", str(hosts)], check=True)
    found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    seconds = found["seconds"]
    alone = list(map(max, zip(seconds["gradient"], seconds["exchange"], strict=True)))
    report(
        f"overlap on {hosts} hosts at {rate}, batch {found['batch']}",
        {
            f"{name} / larger alone": spread([s / a for s, a in zip(took, alone, strict=True)])
            for name, took in seconds.items()
        }
        | {
            "gradient / exchange": spread(
                [g / e for g, e in zip(seconds["gradient"], seconds["exchange"], strict=True)]
            )
        },
        {f"s, {name}": spread(took) for name, took in seconds.items()},
    )
    return None


if __name__ == "__main__":
    main()
