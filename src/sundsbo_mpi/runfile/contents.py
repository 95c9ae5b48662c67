"""All that a run file holds but the final iterates, and how it is read from the file."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from sundsbo_mpi.runfile.events import Event
from sundsbo_mpi.runfile.schema import (
    COSTS,
    FACTS,
    LABEL_COUNTS,
    LATER_COSTS,
    STATUSES,
    row_shape,
    series,
    series_paths,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scipy.sparse import csr_array

    from sundsbo_mpi.runfile.schema import Array, RunPlan

CHECK = "crc32"
"""The series of check sums, which files of earlier releases lack."""


@dataclass(frozen=True)
class Contents:
    """A run file's contents; ``series`` maps paths below ``/metrics`` to the rows that count.

    ``attributes`` are those of the root but ``format``; ``planned`` rows have a place in the file;
    ``final`` maps the saved variables to their shapes (n, d) and types.
    """

    attributes: Mapping[str, str | int | float]
    weights: csr_array
    edges: Array
    agents_info: Mapping[str, Array]
    planned: int
    series: Mapping[str, Array]
    events: tuple[Event, ...] = ()
    final: Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of evaluations that count."""
        return len(self.series["iteration"])

    @property
    def agents(self) -> int:
        """The number of agents n."""
        return len(self.agents_info["host"])


def empty(plan: RunPlan) -> Contents:
    """Return the contents of a run that is about to begin.

    Raises:
        UsageError: The name of a metric cannot be stored.
    """
    from scipy.sparse import csr_array

    dtype = np.dtype(plan.dtype)
    final = {v: ((plan.agents, d), dtype) for v, d in plan.variables.items()}
    return Contents(
        attributes={**plan.attributes, "status": "running", "ended": ""},
        weights=csr_array(plan.weights),
        edges=np.asarray(plan.edges),
        agents_info=plan.agents_info,
        planned=plan.rows,
        series={path: np.empty((0, *shape), kind) for path, (shape, kind) in series(plan).items()},
        final=final if plan.save_final else {},
    )


def read_contents(file: h5py.File) -> Contents:
    """Read a run file; one of ``opening.DAMAGED`` is raised where something is not as it must be.

    The file may be written meanwhile.
    """
    attributes = read_attributes(file)
    agents, edges = len(file["agents"]["host"]), len(file["topology/edges"])
    return Contents(
        attributes=attributes,
        weights=read_weights(file["topology/weights"], agents),
        edges=_numbers(file, "topology/edges", (edges, 2), edges),
        agents_info=_agents_info(file["agents"], agents),
        planned=len(file["metrics"]["iteration"]),
        series=_series(file["metrics"], agents, edges),
        events=read_events(file),
        final={name: (saved.shape, saved.dtype) for name, saved in file.get("final", {}).items()},
    )


def check_sums(columns: Mapping[str, Array]) -> Array:
    """Return the CRC-32 of every row, shape (r,): of its bytes in the order of the paths."""
    rows = len(next(iter(columns.values())))
    parts = [
        np.ascontiguousarray(columns[path]).view(np.uint8).reshape(rows, -1)
        for path in sorted(columns)
        if columns[path].size
    ]
    table = np.concatenate(parts, axis=1) if parts else np.empty((rows, 0), np.uint8)
    return np.array([zlib.crc32(row.tobytes()) for row in table], dtype=np.int64)


def read_attributes(file: h5py.File) -> dict[str, Any]:
    """Return the attributes of the root, all of which are texts or numbers."""
    found = {name: read_attribute(file, name) for name in file.attrs if name != "format"}
    if found.get("status") not in STATUSES or not isinstance(found.get("ended"), str):
        raise ValueError("its attributes say no known status, or not when it ended")
    if isinstance(found.get("rho"), str):
        raise ValueError(f"its attribute 'rho' is '{found['rho']}', not a number")
    return found


def read_attribute(file: h5py.File, name: str) -> str | int | float:
    """Return an attribute as a plain text or number."""
    if not isinstance(name, str) or not name.isprintable():
        raise ValueError("the name of an attribute cannot be printed")
    value = file.attrs[name]
    if isinstance(value, bytes):
        value = value.decode()
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, str | int | float):
        raise ValueError(f"its attribute '{name}' is neither a text nor a number")
    if isinstance(value, str):
        value.encode()  # Flipped bytes are read as surrogates, which cannot be printed,
        if not "".join(value.splitlines()).isprintable():  # or as what steers a terminal.
            raise ValueError(f"its attribute '{name}' cannot be printed")
    return value


def read_weights(stored: h5py.Dataset | h5py.Group, agents: int) -> csr_array:
    """Return the weights of a period, one below the other, (T n, n)."""
    from scipy.sparse import csr_array

    if isinstance(stored, h5py.Dataset):
        weights = csr_array(stored[()])
    else:
        parts = tuple(stored[name][()] for name in ("data", "indices", "indptr"))
        weights = csr_array(parts, shape=tuple(stored.attrs["shape"]))
        weights.check_format(full_check=True)
    whole = agents and weights.shape[1] == agents and weights.shape[0] % agents == 0
    if not whole or weights.dtype.kind != "f":
        raise ValueError(f"its weights are {weights.shape} for {agents} agents")
    return weights


def read_fact(group: h5py.Group, name: str, agents: int) -> Array:
    """Return what ``/agents`` says about every agent under a name, shape (n,)."""
    facts = group[name]
    text = h5py.check_string_dtype(facts.dtype) is not None
    if facts.shape != (agents,) or text != (FACTS[name] is str):
        raise ValueError(f"'{name}' holds {facts.dtype} of shape {facts.shape} for {agents} agents")
    column: Array = np.array(facts.asstr()[()], dtype=str) if text else facts[()]
    return column


def read_counts(group: h5py.Group, name: str, agents: int) -> Array:
    """Return how many samples of each class the agents have, shape (n, C)."""
    classes = group[name].size // max(agents, 1)
    return _numbers(group, name, (agents, classes), agents)


def read_events(file: h5py.File) -> tuple[Event, ...]:
    """Return the events; files of earlier releases have none."""
    texts: Iterable[str] = file["events"].asstr()[()] if "events" in file else ()
    return tuple(Event.from_text(text) for text in texts)


def stored_paths(metrics: h5py.Group) -> list[str]:
    """Name the series that there must be, in their order, but for the check sums."""
    costs = [name for name in COSTS if name in metrics["agents"] or name not in LATER_COSTS]
    return series_paths(metrics["task"], list(metrics["consensus"]), costs)


def _agents_info(group: h5py.Group, agents: int) -> dict[str, Array]:
    counted = [name for name in LABEL_COUNTS if name in group]
    return {name: read_fact(group, name, agents) for name in FACTS} | {
        name: read_counts(group, name, agents) for name in counted
    }


def _series(metrics: h5py.Group, agents: int, edges: int) -> dict[str, Array]:
    # Read before the rows: these are complete on disk as soon as the counter covers them.
    rows, planned = int(metrics["rows"][()]), len(metrics["iteration"])
    if not 0 <= rows <= planned:
        raise ValueError(f"it counts {rows} evaluations, expected 0 to the {planned} planned ones")
    columns = {
        path: _numbers(metrics, path, (planned, *row_shape(path, agents, edges)), rows)
        for path in stored_paths(metrics)
    }
    if not all(np.isfinite(columns[name]).all() for name in ("elapsed_s", "wall_s")):
        raise ValueError("evaluations that count have no time")
    if CHECK in metrics and all(f"agents/{name}" in columns for name in COSTS):
        stored = _numbers(metrics, CHECK, (planned,), rows)
        if len(odd := np.flatnonzero(stored != check_sums(columns))):
            raise ValueError(f"evaluation {odd[0]} does not match its check sum")
    return columns


def _numbers(parent: h5py.Group, path: str, shape: tuple[int, ...], rows: int) -> Array:
    """Return the first rows of a data set that must hold numbers and have the shape."""
    path.encode()
    stored = parent[path]
    if stored.shape != shape or stored.dtype.kind not in "iuf":
        raise ValueError(
            f"'{path}' holds {stored.dtype} of shape {stored.shape}, expected numbers of {shape}"
        )
    return np.asarray(stored[:rows])
