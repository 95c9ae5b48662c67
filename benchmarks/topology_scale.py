"""What a topology of many agents costs before a run starts: seconds and memory.

    python benchmarks/topology_scale.py [--agents N]... [--graph NAME]...

A process of its own for every size makes the weights (which judges them: doubly stochastic,
connected, rho < 1), writes the .npz, reads and judges it again, and divides the agents among nodes
of 64.  Prints one line of JSON for each, with the bytes that rank 0 sends to every other rank and
the peak of resident memory above that of the imports, and then a table.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

GRAPHS = ("ring", "torus", "random-regular")
SIZES = (100, 1_000, 5_000, 10_000, 20_000)
NODE = 64


@click.command()
@click.option("--agents", "sizes", type=int, multiple=True, default=SIZES, show_default=True)
@click.option("--graph", "graphs", multiple=True, default=GRAPHS, show_default=True)
@click.option("--here", is_flag=True, help="Measure the one case in this process.")
def main(sizes: tuple[int, ...], graphs: tuple[str, ...], here: bool) -> None:
    """Measure all graphs at all sizes."""
    if here:
        print(json.dumps(measure(graphs[0], sizes[0])), flush=True)
        return
    found = []
    for graph in graphs:
        for agents in sizes:
            line = measured_apart(graph, agents)
            print(line, flush=True)
            found.append(json.loads(line))
    Console(stderr=True, width=120).print(table(found))


def measured_apart(graph: str, agents: int) -> str:
    """Measure in a process of its own, whose peak of memory is that of one case."""
    words = [sys.executable, __file__, "--here", "--graph", graph, "--agents", str(agents)]
    # The vectors are too short for two threads to help each other.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def measure(graph: str, agents: int) -> dict[str, Any]:
    """Return the seconds of every stage, bytes, and MiB of memory, of one graph and size."""
    from sundsbo_mpi.topology import BUILDERS, read_weights, write_weights
    from sundsbo_mpi.topology.grouping import crossing, grouped

    imported = peak()
    made, weights = timed(lambda: BUILDERS[graph](agents))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "W.npz")
        written, _ = timed(lambda: write_weights(weights, path))
        read, _ = timed(lambda: read_weights(path))
    judged = peak()
    nodes = [rank // NODE for rank in range(agents)]
    placed, order = timed(lambda: grouped(weights, nodes))
    node_of = [0] * agents
    for rank, agent in enumerate(order):
        node_of[agent] = nodes[rank]
    return {
        "graph": graph,
        "agents": agents,
        "rho": weights.rho,
        "make_s": round(made, 4),
        "write_s": round(written, 4),
        "read_s": round(read, 4),
        "sent_bytes": len(pickle.dumps(weights)),
        "memory_mib": round(judged - imported, 1),
        "place_s": round(placed, 4),
        "crossing": crossing(weights, nodes),
        "crossing_placed": crossing(weights, node_of),
        "links": len(weights.edges()) // 2,
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Do something; return its seconds and its result."""
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def peak() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table(found: list[dict[str, Any]]) -> Table:
    """Lay the figures out for people."""
    shown = Table("graph", "agents", "1 - rho", "make s", "read s", "MiB", "sent kB", "place s")
    for column in ("cut", "in order", "links"):
        shown.add_column(column)
    for case in found:
        shown.add_row(
            case["graph"],
            str(case["agents"]),
            f"{1 - case['rho']:.3g}",
            f"{case['make_s']:.3g}",
            f"{case['read_s']:.3g}",
            f"{case['memory_mib']:.0f}",
            f"{case['sent_bytes'] / 1000:.0f}",
            f"{case['place_s']:.3g}",
            *(str(case[name]) for name in ("crossing_placed", "crossing", "links")),
        )
    return shown


if __name__ == "__main__":
    main()
