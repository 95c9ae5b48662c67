"""Accuracy of hyper-cleaning runs on real data, over seeds; one line of JSON and a table.

    python benchmarks/hyper_cleaning.py [--data-dir DIR] [--seeds 3] [--only NAME]...

Every run is ten agents on the ring with self-weight 0.5, started through launch/local.sh with the
mpirun beside this python.  ``digits`` needs nothing; the others need Fashion-MNIST (--data-dir, or
Debian's package dataset-fashion-mnist).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from sundsbo_mpi.runfile import read_run

ROOT = Path(__file__).resolve().parents[1]
PRESET = ("--preset", "paper/hyper-cleaning")
FASHION = ("--dataset", "fashion-mnist")
RUNS = {
    "digits": (),
    "fashion H=0.1": (*FASHION, "--set", "task.heterogeneity=0.1"),
    "fashion H=1": (*FASHION, "--set", "task.heterogeneity=1"),
    "preset GT H=1": (*PRESET, "--set", "task.heterogeneity=1"),
    "preset SE H=1": (*PRESET, "--algorithm", "sun-dsbo-se", "--set", "task.heterogeneity=1"),
    "preset GT H=0.1": (*PRESET, "--set", "task.heterogeneity=0.1"),
    "preset SE H=0.1": (*PRESET, "--algorithm", "sun-dsbo-se", "--set", "task.heterogeneity=0.1"),
}
METRICS = ("test_accuracy", "test_accuracy_local", "weight_gap", "weight_auc")


def measure(arguments: tuple[str, ...], seed: int, folder: Path) -> dict[str, float]:
    """Run once and return the metrics at iterations 100 and 500."""
    output = folder / "run.h5"
    environment = os.environ | {"BIN": str(Path(sys.executable).parent)}
    flags = ("--seed", str(seed), "--iterations", "500", "--eval-every", "100")
    ring = ROOT / "topologies" / "ring-10-0.5.txt"
    where = ("--topology", ring, "--output", output, "--overwrite")
    subprocess.run(
        [ROOT / "launch" / "local.sh", "10", *where, *flags, *arguments],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    run = read_run(output)
    at = {int(k): row for row, k in enumerate(run.iteration)}
    found = {f"{m}@{k}": float(run.task[m][at[k]]) for m in METRICS for k in (100, 500)}
    found["consensus_y@500"] = float(run.consensus["y"][at[500]])
    found["largest_invariant"] = float(np.nanmax([run.invariant[v] for v in run.invariant]))
    found["wall_s"] = float(run.wall_s[-1])
    return found


@click.command()
@click.option("--data-dir", help="Where Fashion-MNIST is.")
@click.option("--seeds", default=3, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(RUNS)))
def main(data_dir: str | None, seeds: int, only: tuple[str, ...]) -> None:
    """Run the settings over the seeds."""
    where = ("--data-dir", data_dir) if data_dir else ()
    results = {}
    with TemporaryDirectory() as folder:
        for name in only or RUNS:
            extra = () if name == "digits" else where
            runs = [measure((*RUNS[name], *extra), s, Path(folder)) for s in range(seeds)]
            results[name] = {m: [run[m] for run in runs] for m in runs[0]}
    print(json.dumps(results))
    table = Table("setting", "metric", "mean", "standard deviation", "seeds")
    for name, metrics in results.items():
        for metric, found in metrics.items():
            shown = " ".join(f"{value:.4g}" for value in found)
            table.add_row(name, metric, f"{np.mean(found):.4g}", f"{np.std(found):.2g}", shown)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
