"""Long runs: what a process holds does not grow, and what a method conserves stays conserved.

    python tests/soak/endurance.py [--iterations 100000] [--only CASE]...

Every agent reports its resident memory, mappings (of shared memory, too), descriptors, threads and
Python objects (the requests of mpi4py, too) at a hundred evaluations.  After a fifth of the run the
later ones may not exceed the earlier ones by more than ALLOWED.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from jobs import FailedError, complete, topology
from watched import holdings

TASK = f"{Path(__file__).with_name('watched.py')}:Watched"
AGENTS, EVALUATIONS = 3, 100
ALLOWED = {
    "resident_bytes": 512 * 1024,
    "mappings": 1.5,
    "descriptors": 0.0,
    "threads": 0.0,
    "objects": 300.0,
}
"""Growth of the agents' mean: an object or a handle left behind by every iteration is more."""
CONSERVED = 1e-9
CONSERVED_ED = 1e-13
"""By iteration: what rounding does to ED's conserved sum adds up, by 4e-17 in each iteration of a
plain dense recursion on three agents, and is told relative to a direction of some 1e-3."""
CONSERVED_COMPRESSED = 2e-16
"""By iteration to the power 1.5: rounding leaves the agents' differences from what their neighbours
know with a sum that walks at random, a share of which a tracker takes up in every iteration."""
STEPS = [
    word
    for setting in ("step_x=0.05", "step_y=0.05", "step_theta=0.05", "mu0=0.1", "gamma=0.1")
    for word in ("--set", f"algorithm.{setting}")
]
CASES = {
    "gt-auto": ("sun-dsbo-gt",),
    "gt-neighbor": ("sun-dsbo-gt", "--transport", "neighbor"),
    "gt-persistent": ("sun-dsbo-gt", "--transport", "persistent"),
    "gt-p2p": ("sun-dsbo-gt", "--transport", "p2p"),
    "gt-checkpoint": ("sun-dsbo-gt", "--checkpoint", "kept"),
    "gt-compressed": ("sun-dsbo-gt", "--set", "algorithm.compressor=quantiser"),
    "gt-overlap": ("sun-dsbo-gt", "--transport", "p2p", "--overlap", "always"),
    "ed-auto": ("sun-dsbo-ed",),
    "ed-persistent": ("sun-dsbo-ed", "--transport", "persistent"),
}


def grown(values):
    """Return by how much the last quarter is above the one before the middle, at its largest."""
    rows = len(values)
    return float(np.max(values[3 * rows // 4 :]) - np.max(values[rows // 4 : rows // 2]))


def judge(path, iterations, allowed=CONSERVED):
    """Return figures of a run file and what is wrong with it."""
    with h5py.File(path, "r", locking=False) as run:
        metrics = run["metrics"]
        done = int(metrics["iteration"][-1])
        growth = {name: grown(metrics[f"task/{name}"][:]) for name in ALLOWED}
        late = slice(int(metrics["rows"][()]) // 5, None)
        broken = max(float(np.nanmax(v[late])) for v in metrics["invariant"].values())
        apart = max(grown(v[:]) / float(np.max(v[late])) for v in metrics["consensus"].values())
    wrong = [f"{name} grew by {growth[name]:g}" for name in ALLOWED if growth[name] > ALLOWED[name]]
    if done != iterations:
        wrong.append(f"it ended after {done} iterations")
    if not broken < allowed:
        wrong.append(f"an invariant was broken by {broken:g}")
    if not apart < 0.9:
        wrong.append("a consensus error grew")
    return {"growth": growth, "invariant": broken}, wrong


def conserved(name, iterations):
    """Return how far an invariant may be broken."""
    algorithm, *more = CASES[name]
    of_ed = CONSERVED_ED * iterations * (algorithm == "sun-dsbo-ed")
    compressed = any("compressor" in word for word in more)
    return max(CONSERVED, of_ed, CONSERVED_COMPRESSED * iterations**1.5 * compressed)


def endure(name, iterations, folder):
    """Run one case; return a line about it."""
    algorithm, *more = CASES[name]
    every = max(1, iterations // EVALUATIONS)
    if "--checkpoint" in more:
        more += ["--checkpoint-every", str(max(1, every // 5))]
    words = ["--topology", topology(AGENTS, folder), "--task", TASK, "--algorithm", algorithm]
    words += ["--set", "task.noise=0.1", "--dtype", "float64", "--output", f"{name}.h5", *STEPS]
    words += ["--iterations", iterations, "--eval-every", every, *more]
    figures, wrong, seconds = {}, [], None
    try:
        seconds, _ = complete(AGENTS, words, folder, limit=600 + iterations / 10)
        figures, wrong = judge(folder / f"{name}.h5", iterations, conserved(name, iterations))
    except FailedError as error:
        wrong = [str(error)]
    return {"case": name, "iterations": iterations, "seconds": seconds, **figures, "failed": wrong}


def main():
    parser = argparse.ArgumentParser(description="Long runs of the quadratic.")
    parser.add_argument("--iterations", type=int, default=100_000)
    parser.add_argument("--only", action="append", choices=CASES)
    asked = parser.parse_args()
    failed = 0
    assert holdings().keys() == ALLOWED.keys()
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.only or CASES:
            line = endure(name, asked.iterations, Path(folder))
            print(json.dumps({"program": "endurance", **line}), flush=True)
            failed += bool(line["failed"])
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
