"""Kills with fault tolerance: the agents that are left go on without those that are lost.

    python tests/soak/surviving.py [--kills 30] [--seed 0]     # Open MPI's environment

Whoever is killed when, those who are left must come to the end, and to the penalised solution of
their own problem.  One run that fails is repeated by --only NUMBER.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
from comparing import newest_row
from jobs import FailedError, Job, report, topology

from sundsbo_mpi.tasks.closed_form import mean, penalised_solution
from sundsbo_mpi.tasks.quadratic import Quadratic

METHODS = ("sun-dsbo-gt", "sun-dsbo-extra", "sun-dsbo-ed", "sun-dsbo-ed-gt")
MOMENTS = ("any", "rank 0", "two at once", "in turn", "first", "last", "evaluation", "checkpoint")
ITERATIONS, EVAL_EVERY, CHECKPOINT_EVERY = 2500, 10, 50
ENOUGH = 2200
"""Iterations after a loss by which every method has come to its solution."""
NEAR = 1e-8
ROUNDING, WHILE = 1e-9, 100
"""Of the invariants, in so many iterations from a loss, or from the start: they are relative to a
direction that vanishes at the solution."""
LIMIT = 150
MU, GAMMA = 0.1, 0.1
LAUNCHING = ("--with-ft", "ulfm")


def until(job, ready):
    """Wait until something is so, or the job is over."""
    while not job.over and not ready():
        time.sleep(0.002)


def kill(job, ranks, dead):
    """Kill ranks as a crash would."""
    alive = job.alive()
    for rank in ranks:
        with suppress(ProcessLookupError, KeyError):
            os.kill(alive[rank], signal.SIGKILL)
            dead.append(rank)


def strike(job, moment, folder, rng):
    """Kill agents of a run at such a moment; return who they are."""
    run_file, dead = folder / "run.h5", []
    order = rng.permutation(job.ranks).tolist()
    until(job, run_file.exists)
    at = {"first": 0, "last": ITERATIONS - EVAL_EVERY}.get(
        moment, int(rng.integers(0, ITERATIONS - ENOUGH - 2 * EVAL_EVERY))
    )
    until(job, lambda: newest_row(run_file) >= at)
    if moment == "checkpoint":
        until(job, lambda: any((folder / "kept").glob(".iteration-*")))
    elif moment != "first":
        time.sleep(rng.uniform(0, 0.02))
    if moment == "rank 0":
        order = [0]
    kill(job, order[: 2 if moment == "two at once" else 1], dead)
    if moment == "in turn":
        time.sleep(rng.uniform(0, 2.0))
        kill(job, order[1:2], dead)
    return dead


def judge(folder, agents, dead):
    """Return what is wrong with what those who are left have reached."""
    with h5py.File(folder / "run.h5") as run:
        rows = int(run["metrics/rows"][()])
        found = {v: run[f"final/{v}"][()] for v in ("x", "y")}
        iterations = run["metrics/iteration"][:rows].tolist()
        events = map(json.loads, run["events"].asstr()[()])
        losses = [event["iteration"] for event in events if event["kind"] == "agents lost"]
        soon = [any(k < done <= k + WHILE for k in (0, *losses)) for done in iterations]
        defects = max(np.nanmax(run[f"metrics/invariant/{v}"][:rows][soon]) for v in ("x", "y"))
        status = run.attrs["status"]
    left = [i for i in range(agents) if not np.isnan(found["x"][i]).any()]
    wrong = []
    if status not in (b"finished", "finished"):
        wrong.append(f"the run is {status}")
    if iterations != list(range(0, ITERATIONS + 1, EVAL_EVERY)):
        wrong.append(f"its rows are of {iterations}")
    if not set(range(agents)) - set(dead) <= set(left) or len(left) + len(dead) < agents:
        wrong.append(f"agents {left} came to the end without {dead}")
    if len(left) < agents and not losses:
        wrong.append("no loss was written down")
    tasks = [Quadratic(agent=i, agents=agents, seed=0) for i in left]
    upper, lower = mean([t._upper for t in tasks]), mean([t._lower for t in tasks])
    x, y = penalised_solution(upper, lower, tasks[0].sizes["x"], mu=MU, gamma=GAMMA)
    distance = max(np.abs(found[v][left] - s).max() for v, s in (("x", x), ("y", y)))
    return wrong, float(distance), float(defects)


def one(number, seed):
    """Run, kill, judge; return what is wrong, and figures."""
    rng = np.random.default_rng([seed, number])
    moment, method = MOMENTS[number % len(MOMENTS)], str(rng.choice(METHODS))
    agents = int(rng.integers(4, 7))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        every = 1 if moment == "evaluation" else EVAL_EVERY
        words = [
            *("--topology", topology(agents, folder), "--task", "quadratic"),
            *("--algorithm", method, "--iterations", ITERATIONS, "--eval-every", EVAL_EVERY),
            *("--on-failure", "continue", "--save-final", "--output", "run.h5"),
            *("--checkpoint", "kept", "--checkpoint-every", CHECKPOINT_EVERY // every),
        ]
        job = Job(agents, words, folder, launching=LAUNCHING)
        try:
            dead = strike(job, moment, folder, rng)
            status, seconds = job.finish(LIMIT)
            said = f"{moment}, {method}, {agents} agents without {dead}: "
            if status != 0:
                raise FailedError(f"{said}exit {status}\n{job.said()}")
            wrong, distance, defects = judge(folder, agents, dead)
        except FailedError as error:
            return [str(error)], {"moment": moment}
        late = moment == "last"
        if not late and distance > NEAR:
            wrong.append(f"they are {distance:.1e} from the solution")
        if defects > ROUNDING:
            wrong.append(f"the invariants are {defects:.1e}")
        return [said + w for w in wrong], {
            "moment": moment,
            "distance": None if late else distance,
            "seconds": seconds,
        }


def main():
    """Kill and judge, one run after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int)
    asked = parser.parse_args()
    numbers = range(asked.kills) if asked.only is None else [asked.only]
    failed, figures = [], []
    for number in numbers:
        wrong, figure = one(number, asked.seed)
        failed += [f"{number}: {w}" for w in wrong]
        figures.append(figure)
        print(number, figure, *wrong, file=sys.stderr, flush=True)
    distances = [f["distance"] for f in figures if f.get("distance") is not None]
    report(
        "surviving",
        failed,
        runs=len(figures),
        moments=Counter(figure["moment"] for figure in figures),
        largest_distance=max(distances, default=None),
    )


if __name__ == "__main__":
    main()
