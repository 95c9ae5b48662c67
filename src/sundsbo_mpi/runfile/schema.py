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
/metrics/rows                  ()         evaluations written so far
/metrics/<series>              (R, ...)   one row per evaluation
/final/<variable>              (n, d)     with ``--save-final``
=============================  =========  ============================================

Rows at or beyond ``/metrics/rows`` hold NaN (real numbers) or -1 (integers).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from scipy.sparse import csr_array

from sundsbo_mpi.clock import PHASES
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    Array = NDArray[Any]

FORMAT = "sundsbo-mpi/1"
STATUSES = ("running", "finished", "failed", "interrupted")
STATUS_WIDTH = 16
TIME_WIDTH = 32
DENSE_UP_TO = 2000

FACTS = {
    "host": str,
    "device": str,
    "threads": int,
    "train_samples": int,
    "validation_samples": int,
}
"""What ``/agents`` says about every agent."""

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

Control is what the agents tell each other in every iteration beside the payload, whether to go on:
the bytes that an agent hands to the reduction, however the MPI library passes them on.
"""

LATER_COSTS = frozenset({"bytes_control", "rounds_control", "seconds_post"})
"""Those that files of earlier releases lack."""


@dataclass(frozen=True)
class RunPlan:
    """All that fixes the size of a run file before its first row.

    ``rows`` counts the planned evaluations, the one before the first iteration included;
    ``variables`` maps a name to its dimension d; ``edges`` has shape (E, 2); ``weights`` has
    the T matrices of a period one below the other, dense or CSR; ``agents_info`` has one array of
    shape (n,) for each of ``FACTS``; ``dtype`` is the type of the final variables.
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
    scalars = ["elapsed_s", "wall_s", "stationarity", "stationarity_residual", "lipschitz"]
    scalars += [f"task/{name}" for name in plan.task_metrics]
    scalars += [
        f"{group}/{name}" for group in ("consensus", "invariant") for name in plan.variables
    ]
    table: Shapes = {"iteration": ((), np.int64)}
    table |= dict.fromkeys(scalars, ((), np.float64))
    table |= {f"agents/{name}": ((plan.agents,), kind) for name, kind in COSTS.items()}
    table["edges/bytes"] = ((len(plan.edges),), np.int64)
    return table


def size(plan: RunPlan) -> int:
    """Return how many bytes the file takes, to within what HDF5 adds for its own use."""
    numbers = sum(math.prod((plan.rows, *shape)) for shape, _ in series(plan).values())
    dense = math.prod(np.shape(plan.weights))
    numbers += csr_array(plan.weights).nnz if plan.agents > DENSE_UP_TO else dense
    text = sum(len(value) for value in plan.attributes.values() if isinstance(value, str))
    final = plan.agents * sum(plan.variables.values()) * np.dtype(plan.dtype).itemsize
    return 8 * numbers + text + plan.save_final * final


def values(row: Row) -> dict[str, Any]:
    """Map every series, as a path below ``/metrics``, to its value in ``row``."""
    table: dict[str, Any] = {
        "iteration": row.iteration,
        "elapsed_s": row.elapsed_s,
        "wall_s": row.wall_s,
        "stationarity": row.stationarity,
        "stationarity_residual": row.stationarity_residual,
        "lipschitz": row.lipschitz,
        "edges/bytes": row.edge_bytes,
    }
    for group in ("task", "consensus", "invariant", "agents"):
        table |= {f"{group}/{name}": value for name, value in getattr(row, group).items()}
    return table


def lay_out(file: h5py.File, plan: RunPlan) -> None:
    """Create every attribute, group and data set that the run will need, at its full size.

    Nothing is created or resized afterwards, so that later writes overwrite bytes in place and a
    run killed between two of them leaves a file that opens.
    """
    _write_attributes(file, plan.attributes)
    _write_topology(file.create_group("topology"), plan)
    agents = file.create_group("agents")
    for name, kind in FACTS.items():
        text = kind is str
        facts = plan.agents_info[name]
        agents.create_dataset(
            name,
            data=[str(fact) for fact in facts] if text else np.asarray(facts, dtype=np.int64),
            dtype=h5py.string_dtype() if text else np.int64,
            shape=(plan.agents,),
        )
    metrics = _ordered_groups(file, "metrics", ("task", "consensus", "invariant", "agents"))
    metrics.create_dataset("rows", data=0, dtype=np.int64)
    for path, (shape, kind) in series(plan).items():
        _reserve(metrics, path, (plan.rows, *shape), np.dtype(kind))
    if plan.save_final:
        final = file.create_group("final", track_order=True)
        for name, dimension in plan.variables.items():
            _reserve(final, name, (plan.agents, dimension), np.dtype(plan.dtype))


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        if not name or "/" in name or name.startswith("."):
            raise UsageError(
                f"the task reports a metric called '{name}': expected a name without '/' that does "
                "not start with a dot; rename it in the task's report."
            )


def _write_attributes(file: h5py.File, attributes: Mapping[str, str | int | float]) -> None:
    for name, value in attributes.items():
        # Text has variable length: fixed-length attributes cannot exceed 64 kB.
        file.attrs[name] = value
    file.attrs["format"] = FORMAT
    # These two change later; only a fixed-length attribute is overwritten in place.
    for name, value, width in (("status", "running", STATUS_WIDTH), ("ended", "", TIME_WIDTH)):
        file.attrs.create(name, np.bytes_(value), dtype=h5py.string_dtype("ascii", width))


def _write_topology(topology: h5py.Group, plan: RunPlan) -> None:
    topology.create_dataset("edges", data=plan.edges, dtype=np.int64, shape=(len(plan.edges), 2))
    if plan.agents <= DENSE_UP_TO:
        topology.create_dataset("weights", data=csr_array(plan.weights).toarray())
        return
    sparse = csr_array(plan.weights)
    group = topology.create_group("weights")
    group.attrs["shape"] = sparse.shape
    for name in ("data", "indices", "indptr"):
        group.create_dataset(name, data=getattr(sparse, name))


def _ordered_groups(file: h5py.File, parent: str, names: Iterable[str]) -> h5py.Group:
    group = file.create_group(parent)
    for name in names:
        group.create_group(name, track_order=True)
    return group


def _reserve(group: h5py.Group, path: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    early.set_layout(h5py.h5d.CONTIGUOUS)
    # The default allocates at the first write, which would move metadata in a running job.
    early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    empty = -1 if dtype.kind == "i" else np.nan
    group.create_dataset(path, shape=shape, dtype=dtype, fillvalue=empty, dcpl=early)
