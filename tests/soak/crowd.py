"""Many more agents than cores: a run ends, and its results are those of one process.

python tests/soak/crowd.py [--agents 64]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import torch
from jobs import FailedError, complete, topology
from lockstep import Lockstep

from sundsbo_mpi.algorithms import Horizon, method
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.tasks.quadratic import Quadratic
from sundsbo_mpi.topology import Reading, read_weights

ITERATIONS, SEED = 30, 4
ROUNDING = 1e-12
FLOAT32 = 1e-3
"""What the mean of 64 agents' float32 may be off by, beside what it is compared with."""


def words(path, task, output):
    return [
        *("--topology", path, "--task", task, "--output", output, "--save-final"),
        *("--iterations", ITERATIONS, "--eval-every", ITERATIONS // 3, "--seed", SEED),
    ]


def quadratic(agents, algorithm, folder):
    """Compare all agents' last iterates with those of the dense driver."""
    path, output = topology(agents, folder), folder / f"{algorithm}.h5"
    noisy = ["--algorithm", algorithm, "--set", "task.noise=0.2"]
    seconds, _ = complete(agents, [*words(path, "quadratic", output), *noisy], folder, limit=3600)
    flags = {"task": {"name": "quadratic"}, "algorithm": {"name": algorithm}}
    entry = method(algorithm)
    options = entry.options(**resolve(Request(flags=flags)).algorithm_options)
    tasks = [Quadratic(agent=i, agents=agents, seed=SEED, noise=0.2) for i in range(agents)]
    for task in tasks:
        task.to(torch.device("cpu"), torch.float64)
    W = read_weights(str(path), Reading()).weights.matrices[0].toarray()
    dense = Lockstep(entry.build(options, Horizon(agents, ITERATIONS)), tasks, W).run(ITERATIONS)
    with h5py.File(output, "r", locking=False) as run:
        off = {v: float(np.abs(run[f"final/{v}"][:] - dense.rows(v)).max()) for v in run["final"]}
    wrong = [f"{v} differs by {d:g}" for v, d in off.items() if not d < ROUNDING]
    return {"seconds": seconds, "off": max(off.values()), "failed": wrong}


def default(agents, folder):
    """Look at what must hold on any task: all is finite and what is conserved is conserved."""
    output = folder / "default.h5"
    flags = words(topology(agents, folder), "hyper-cleaning", output)
    seconds, _ = complete(agents, flags, folder, limit=3600)
    with h5py.File(output, "r", locking=False) as run:
        metrics = run["metrics"]
        done = metrics["iteration"][:].tolist()
        finite = all(np.isfinite(v[:]).all() for v in metrics["consensus"].values())
        broken = max(float(np.nanmax(v[:])) for v in metrics["invariant"].values())
        learnt = metrics["task/test_loss"][:].tolist()
    wrong = [] if done[-1] == ITERATIONS and finite else [f"rows {done}, finite: {finite}"]
    wrong += [] if broken < FLOAT32 else [f"an invariant was broken by {broken:g}"]
    wrong += [] if learnt[-1] < learnt[0] else [f"nothing was learnt: test losses {learnt}"]
    return {"seconds": seconds, "invariant": broken, "failed": wrong}


def main():
    parser = argparse.ArgumentParser(description="Many more agents than cores.")
    parser.add_argument("--agents", type=int, default=64)
    agents = parser.parse_args().agents
    torch.set_default_dtype(torch.float64)
    failed = False
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        cases = {
            "gt": lambda: quadratic(agents, "sun-dsbo-gt", folder),
            "ed": lambda: quadratic(agents, "sun-dsbo-ed", folder),
            "default task": lambda: default(agents, folder),
        }
        for name, case in cases.items():
            try:
                line = case()
            except FailedError as error:
                line = {"failed": [str(error)]}
            print(json.dumps({"program": "crowd", "case": name, "agents": agents, **line}))
            failed |= bool(line["failed"])
    sys.exit(failed)


if __name__ == "__main__":
    main()
