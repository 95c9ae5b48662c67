"""Small run files with known contents."""

from __future__ import annotations

import json

import numpy as np

from sundsbo_mpi.runfile import Continuation, Event, Row, RunPlan
from sundsbo_mpi.runfile.schema import COSTS

AGENTS = 3
EDGES = np.array([[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]])
CONFIG = {
    "algorithm": {"name": "sun-dsbo-gt", "step_x": 0.1},
    "task": {"name": "hyper-cleaning", "heterogeneity": 0.1},
}


def plan(**changes) -> RunPlan:
    fields = {
        "agents": AGENTS,
        "rows": 6,
        "task_metrics": ("test_loss", "test_accuracy", "test_accuracy_local"),
        "variables": {"x": 4, "y": 5, "theta": 5},
        "edges": EDGES,
        "weights": np.full((AGENTS, AGENTS), 1 / 3),
        "attributes": {
            "config": json.dumps(CONFIG),
            "task": "hyper-cleaning",
            "dataset": "digits",
            "algorithm": "sun-dsbo-gt",
            "estimator": "minibatch",
            "topology": "ring (n=3) [odd] name",
            "mpi_library": "Open MPI v5.0.11",
            "iterations": 50,
            "seed": 7,
            "rho": 0.25,
            "started": "2026-11-27T23:15:00+00:00",
        },
        "agents_info": {
            "host": np.array(["node1", "node1", "node2"]),
            "device": np.array(["cpu", "cpu", "cuda:0"]),
            "threads": np.array([1, 1, 4]),
            "train_samples": np.array([100, 100, 100]),
            "validation_samples": np.array([50, 50, 51]),
        },
    }
    return RunPlan(**(fields | changes))


def row(index: int, of: RunPlan | None = None, **changes) -> Row:
    """Row ``index``: every number in it is different from those of the other rows."""
    of = of or plan()
    tens = 10 * index
    costs = {}
    for number, (name, kind) in enumerate(COSTS.items()):
        costs[name] = (1000 * index + 100 * number + np.arange(of.agents)).astype(kind)
    fields = {
        "iteration": tens,
        "elapsed_s": 0.5 + index,
        "wall_s": 0.75 + index,
        "task": {name: 80.0 + index + i / 7 for i, name in enumerate(of.task_metrics)},
        "consensus": {name: 1.0 / (index + i + 1) for i, name in enumerate(of.variables)},
        "invariant": {
            name: 1e-16 * (index + i) if index else np.nan for i, name in enumerate(of.variables)
        },
        "stationarity": 0.1 / (index + 1),
        "stationarity_residual": 1e-9 * (index + 1),
        "lipschitz": 2.0 + index,
        "agents": costs,
        "edge_bytes": 7 * index + np.arange(len(of.edges)),
    }
    return Row(**(fields | changes))


def resumption(iteration: int, **changes) -> Continuation:
    """How the run of ``plan`` goes on from a checkpoint."""
    fields = {
        "iteration": iteration,
        "iterations": 50,
        "eval_every": 10,
        "event": Event(iteration, "resumed", f"resumed after {iteration} iterations"),
        "edges": EDGES,
        "identity": {"task": "hyper-cleaning", "seed": 7, "agents": AGENTS},
    }
    return Continuation(**(fields | changes))
