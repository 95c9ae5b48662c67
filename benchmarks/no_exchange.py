"""The control of the hyper-cleaning figures: the paper's settings without any exchange.

    python benchmarks/no_exchange.py [--dataset NAME] [--data-dir DIR] [--iterations K]...

Ten agents at H = 1 in one process, mixed by W = I, which the program refuses as not connected;
prints one line of JSON for each K, the iterations 100 and 500.  Averaging at evaluation makes the
accuracy look good; the agents' own models and the consensus error do not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
import numpy as np
import torch

from sundsbo_mpi.config.methods import build_algorithm
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from lockstep import Lockstep

AGENTS = 10


@click.command()
@click.option("--dataset", default="fashion-mnist", show_default=True)
@click.option("--data-dir", help="Where its files are.")
@click.option("--iterations", multiple=True, default=(100, 500), show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(dataset: str, data_dir: str | None, iterations: tuple[int, ...], seed: int) -> None:
    """Run the control."""
    layer = {"task": {"dataset": dataset, "data_dir": data_dir, "heterogeneity": 1.0}}
    config = resolve(Request(preset="paper/hyper-cleaning", flags=layer))
    shards = HyperCleaning.shards(agents=AGENTS, seed=seed, **config.task_options)
    tasks = [
        HyperCleaning(agent=i, agents=AGENTS, seed=seed, shard=shard, **config.task_options)
        for i, shard in enumerate(shards)
    ]
    algorithm, _ = build_algorithm(config, AGENTS)
    agents = Lockstep(algorithm, tasks, np.eye(AGENTS))
    for iteration in iterations:
        agents.run(iteration - agents.k)
        print(json.dumps({"iteration": iteration, **measure(agents)}), flush=True)


def measure(agents: Lockstep) -> dict[str, float]:
    """Return the accuracy of the averaged and of the agents' own models, and the spread of y."""
    y = torch.from_numpy(agents.rows("y"))
    average = y.mean(dim=0)
    return {
        "test_accuracy": accuracy(agents, [average] * AGENTS),
        "test_accuracy_local": accuracy(agents, list(y)),
        "consensus_y": float((y - average).square().sum(dim=1).mean()),
    }


def accuracy(agents: Lockstep, models: list[torch.Tensor]) -> float:
    """Merge the agents' accuracies, each with its model on its share of the test images."""
    pairs = [
        task.report(w["x"], model)["test_accuracy"]
        for task, w, model in zip(agents.tasks, agents.points, models, strict=True)
    ]
    right, count = np.sum(pairs, axis=0)
    return float(right / count)


if __name__ == "__main__":
    main()
