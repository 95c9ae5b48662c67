"""What a run file contains: groups, data sets, their shapes and types.

``n`` agents, ``E`` directed edges and ``R`` planned evaluations give

=============================  =========  ============================================
/ (attributes)                            format, status, ended, config, versions, ...
/topology/weights              (T n, n)   the T matrices of a period one below the other, T = 1
                                          where W does not change and 0 where it is drawn for ever
                                          (see the attribute topology_recipe); above n = 2000 a
                                          group in CSR form: data, indices, indptr and the attribute
                                          shape
/topology/edges                (E, 2)     sender, receiver
/agents/<name>                 (n,)       host, device, threads, train_samples, ...
/agents/<part>_label_counts    (n, C)     the agents' samples of each of C classes, where the task
                                          tells them
/metrics/rows                  ()         evaluations written so far
/metrics/<series>              (R, ...)   one row per evaluation
/metrics/crc32                 (R,)       the check sum of all other numbers of a row
/events                        (e,)       what happened besides, as JSON: iteration, kind, sentence,
                                          details, time
/final/<variable>              (n, d)     with ``--save-final``
=============================  =========  ============================================

Rows at or beyond ``/metrics/rows`` hold NaN (real numbers) or -1 (integers).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.clock import PHASES
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Array = NDArray[Any]

FORMAT = "sundsbo-mpi/1"
BENCH_FORMAT = "sundsbo-mpi-bench/1"
"""Of the file of a bench, which is no run file; ``bench.file`` has its contents."""
STATUSES = ("running", "finished", "failed", "interrupted")

FACTS = {
    "host": str,
    "device": str,
    "threads": int,
    "train_samples": int,
    "validation_samples": int,
}
"""What ``/agents`` says about every agent."""

LABEL_COUNTS = ("train_label_counts", "validation_label_counts")
"""What ``/agents`` may say besides: files of earlier releases, and other tasks, lack it."""

SCALARS = ("iteration", "elapsed_s", "wall_s", "stationarity", "stationarity_residual", "lipschitz")
"""The series of one number for every evaluation that every run has."""

COSTS: dict[str, type] = {
    "bytes_payload": np.int64,
    "bytes_network": np.int64,
    "bytes_shared": np.int64,
    "messages": np.int64,
    "rounds": np.int64,
    "bytes_control": np.int64,
    "rounds_control": np.int64,
    **{f"seconds_{phase}": np.float64 for phase in PHASES},
}
"""What ``/metrics/agents`` counts for every agent since the start of the run.

Control is what the agents tell each other in every iteration beside the payload, whether to go on.
"""

LATER_COSTS = frozenset({"bytes_control", "rounds_control", "seconds_post"})
"""Those that files of earlier releases lack."""


@dataclass(frozen=True)
class RunPlan:
    """All that fixes the size of a run file before its first row.

    ``rows`` counts the planned evaluations, the one before the first iteration included;
    ``variables`` maps a name to its dimension d; ``edges`` has shape (E, 2); ``weights`` has
    the T matrices of a period one below the other, dense or CSR; ``agents_info`` has one array of
    shape (n,) for each of ``FACTS``, and one of shape (n, C) for each of ``LABEL_COUNTS`` that are
    known; ``dtype`` is the type of the final variables.
    """

    agents: int
    rows: int
    task_metrics: tuple[str, ...]
    variables: Mapping[str, int]
    edges: Array
    weights: Array | csr_array
    attributes: Mapping[str, str | int | float]
    agents_info: Mapping[str, Array]
    save_final: bool = False
    dtype: str = "float32"


@dataclass(frozen=True)
class Row:
    """One evaluation: scalars of the averaged iterate, and what every agent has spent so far.

    ``agents`` has one array of shape (n,) for each of ``COSTS``; ``edge_bytes`` has shape (E,).
    Seconds are cumulative: ``elapsed_s`` of training only, ``wall_s`` of everything.
    """

    iteration: int
    elapsed_s: float
    wall_s: float
    task: Mapping[str, float]
    consensus: Mapping[str, float]
    invariant: Mapping[str, float]
    agents: Mapping[str, Array]
    edge_bytes: Array
    stationarity: float = field(default=np.nan)
    stationarity_residual: float = field(default=np.nan)
    lipschitz: float = field(default=np.nan)


Shapes = dict[str, tuple[tuple[int, ...], type]]


def series(plan: RunPlan) -> Shapes:
    """Map every series, as a path below ``/metrics``, to the shape and type of one of its rows."""
    _check_names(plan.task_metrics)
    kinds: dict[str, type] = {"iteration": np.int64, "edges/bytes": np.int64}
    kinds |= {f"agents/{name}": kind for name, kind in COSTS.items()}
    return {
        path: (row_shape(path, plan.agents, len(plan.edges)), kinds.get(path, np.float64))
        for path in series_paths(plan.task_metrics, plan.variables)
    }


def series_paths(
    task: Iterable[str], variables: Collection[str], costs: Iterable[str] = COSTS
) -> list[str]:
    """Name every series but the check sums, as a path below ``/metrics``, in their order.

    Args:
        task: The names of the task's metrics.
        variables: Those of the method's variables.
        costs: Those of ``COSTS`` that there are.
    """
    return [
        *SCALARS,
        *(f"task/{name}" for name in task),
        *(f"{group}/{name}" for group in ("consensus", "invariant") for name in variables),
        *(f"agents/{name}" for name in costs),
        "edges/bytes",
    ]


def row_shape(path: str, agents: int, edges: int) -> tuple[int, ...]:
    """Return the shape of one row of a series."""
    return {"agents": (agents,), "edges": (edges,)}.get(path.partition("/")[0], ())


def values(row: Row) -> dict[str, Any]:
    """Map every series, as a path below ``/metrics``, to its value in ``row``."""
    table: dict[str, Any] = {name: getattr(row, name) for name in SCALARS}
    table["edges/bytes"] = row.edge_bytes
    for group in ("task", "consensus", "invariant", "agents"):
        table |= {f"{group}/{name}": value for name, value in getattr(row, group).items()}
    return table


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if not name or "/" in name or name.startswith("."):
            raise UsageError(
                f"the task reports a metric called '{name}': expected a name without '/' that does "
                "not start with a dot; rename it in the task's report."
            )
