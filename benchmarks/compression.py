"""Hyper-cleaning with compressed messages beside the same run with whole ones.

    python benchmarks/compression.py [--dataset NAME] [--data-dir DIR] [--method NAME]...
        [--preset NAME] [--form FORM]...

Ten agents on a ring, in one process: what arrives does not depend on who carries it, and the bytes
are those of the messages themselves.  For SUN-DSBO-SE and -GT, and every form of message, prints
one line of JSON and a row of the table: the iterations and the bytes to each neighbour until the
averaged model is as accurate as without compression after ``--iterations``, and the consensus error
of y and the mean accuracy of the agents' own models after as many iterations.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from sundsbo_mpi.config.methods import build_algorithm
from sundsbo_mpi.config.resolving import Config, Request, resolve
from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning
from sundsbo_mpi.topology import BUILDERS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from lockstep import Lockstep

AGENTS = 10
PATIENCE = 1.3
"""Of the iterations without compression, so many are tried with it."""
FORMS: dict[str, tuple[str, ...]] = {
    "whole": (),
    "bf16": ("wire=bf16",),
    "quantiser 3 bits": ("compressor=quantiser",),
    "quantiser 3 bits, gamma_c 0.75": ("compressor=quantiser", "gamma_c=0.75"),
    "quantiser 2 bits": ("compressor=quantiser", "bits=2", "gamma_c=0.5"),
    "top-k 10 %": ("compressor=top-k",),
    "private x": ("private=true",),
    "private x, quantiser 3 bits": ("private=true", "compressor=quantiser"),
}


@click.command()
@click.option("--dataset", default="digits", show_default=True)
@click.option("--data-dir", help="Where its files are.")
@click.option("--method", multiple=True, default=("sun-dsbo-se", "sun-dsbo-gt"), show_default=True)
@click.option("--form", multiple=True, type=click.Choice(list(FORMS)), help="All, by default.")
@click.option("--iterations", default=500, show_default=True)
@click.option("--every", default=10, show_default=True, help="Iterations between evaluations.")
@click.option("--preset", help="As in sundsbo-mpi run.")
@click.option("--set", "sets", multiple=True, help="table.key=value, as in sundsbo-mpi run.")
@click.option("--seed", default=0, show_default=True)
def main(method: tuple[str, ...], form: tuple[str, ...], **options: Any) -> None:
    """Run the comparison."""
    rows = []
    for name in method:
        target = None
        for label in dict.fromkeys(("whole", *(form or FORMS))):
            found = measure(name, label, target, **options)
            target = target or found
            print(json.dumps(found), flush=True)
            rows.append(found)
    Console(width=120).print(_table(rows))


def measure(name: str, label: str, whole: dict[str, Any] | None, **options: Any) -> dict[str, Any]:
    """Run one method with one form of messages; ``whole`` is what it found without compression."""
    agents = _agents(name, label, **options)
    iterations, every = options["iterations"], options["every"]
    last = iterations if whole is None else round(PATIENCE * iterations)
    curve = {}
    found: dict[str, Any] = {"method": name, "form": label}
    stops = sorted({*range(every, last, every), iterations, last})
    for done, stop in pairwise((0, *stops)):
        agents.run(stop - done)
        curve[stop] = _accuracy(agents, average=True)
        if stop == iterations:
            found |= _state(agents, curve[stop])
    goal = found["test_accuracy"] if whole is None else whole["goal"]
    needed = next((stop for stop in curve if curve[stop] >= goal), None)
    if whole is None:
        needed = iterations  # what it is compared with, wherever its curve may have been before
    found |= {"goal": goal, "iterations_to_goal": needed, "bytes_to_goal": None}
    if needed is not None:
        found["bytes_to_goal"] = needed * found["bytes_per_iteration"]
        base = found if whole is None else whole
        found["of_the_bytes"] = found["bytes_to_goal"] / base["bytes_to_goal"]
    return found


def _agents(name: str, label: str, **options: Any) -> Lockstep:
    """Return ten agents at the start."""
    torch.manual_seed(0)
    flags = {
        "task": {"dataset": options["dataset"], "data_dir": options["data_dir"]},
        "algorithm": {"name": name},
        "run": {"iterations": options["iterations"], "seed": options["seed"]},
    }
    sets = (*options["sets"], *(f"algorithm.{setting}" for setting in FORMS[label]))
    config = resolve(Request(flags=flags, sets=sets, preset=options["preset"]))
    W = BUILDERS["ring"](AGENTS, self_weight=0.5).matrix.toarray()
    return Lockstep(build_algorithm(config, AGENTS)[0], _tasks(config), W)


def _tasks(config: Config) -> list[HyperCleaning]:
    seed, own = config.run.seed, config.task_options
    torch.set_default_dtype(getattr(torch, config.run.dtype))
    shards = HyperCleaning.shards(agents=AGENTS, seed=seed, **own)
    return [
        HyperCleaning(agent=i, agents=AGENTS, seed=seed, shard=shard, **own)
        for i, shard in enumerate(shards)
    ]


def _state(agents: Lockstep, accuracy: float) -> dict[str, float]:
    y = agents.rows("y").astype(np.float64)
    return {
        "bytes_per_iteration": agents.bytes / agents.k,
        "test_accuracy": accuracy,
        "test_accuracy_local": _accuracy(agents, average=False),
        "consensus_y": float(np.square(y - y.mean(axis=0)).sum(axis=1).mean()),
    }


def _accuracy(agents: Lockstep, *, average: bool) -> float:
    """Merge the agents' accuracies, each with the averaged or its own model."""
    own = torch.from_numpy(agents.rows("y"))
    models = [own.mean(dim=0)] * AGENTS if average else list(own)
    pairs = [
        [float(n) for n in task.report(w["x"], model)["test_accuracy"]]
        for task, w, model in zip(agents.tasks, agents.points, models, strict=True)
    ]
    right, count = np.sum(pairs, axis=0)
    return float(right / count)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        "method", "messages", "kB per iteration", "iterations", "MB", "of the bytes",
        "accuracy", "local", "consensus y",
    )  # fmt: skip
    for row in rows:
        reached = row["bytes_to_goal"] is not None
        table.add_row(
            row["method"],
            row["form"],
            f"{row['bytes_per_iteration'] / 1e3:.4g}",
            str(row["iterations_to_goal"]) if reached else "not reached",
            f"{row['bytes_to_goal'] / 1e6:.4g}" if reached else "",
            f"1/{1 / row['of_the_bytes']:.3g}" if reached else "",
            f"{row['test_accuracy']:.2f}",
            f"{row['test_accuracy_local']:.2f}",
            f"{row['consensus_y']:.2e}",
        )
    return table


if __name__ == "__main__":
    main()
