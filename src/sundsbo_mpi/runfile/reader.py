"""The run file as it is read: a snapshot of the rows that count, of a running or ended run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from scipy.sparse import csr_array

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile.opening import opened
from sundsbo_mpi.runfile.schema import COSTS, FACTS, LATER_COSTS, STATUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sundsbo_mpi.runfile.schema import Array

SCALARS = ("iteration", "elapsed_s", "wall_s", "stationarity", "stationarity_residual", "lipschitz")


@dataclass(frozen=True)
class RunData:
    """A run file's contents; every series has one row per evaluation that counts.

    With r rows, n agents and E directed edges: scalar series have shape (r,), those of ``agents``
    (r, n), where files of earlier releases lack ``LATER_COSTS``, and ``edge_bytes`` (r, E).
    ``weights`` has the T matrices of a period one below the other, (T n, n).  ``planned`` rows were
    foreseen; ``modified`` is the time of the last write (UTC).  ``attributes`` are the root
    attributes but for the parsed ``config``; ``final`` maps the saved variables to their shapes
    (n, d), see ``read_final``.
    """

    path: Path
    status: str
    modified: datetime
    attributes: Mapping[str, Any]
    config: Mapping[str, Any]
    weights: csr_array
    edges: Array
    agents_info: Mapping[str, Array]
    planned: int
    iteration: Array
    elapsed_s: Array
    wall_s: Array
    task: Mapping[str, Array]
    consensus: Mapping[str, Array]
    invariant: Mapping[str, Array]
    stationarity: Array
    stationarity_residual: Array
    lipschitz: Array
    agents: Mapping[str, Array]
    edge_bytes: Array
    final: Mapping[str, tuple[int, int]]

    @property
    def rows(self) -> int:
        """The number of evaluations that count."""
        return len(self.iteration)

    @property
    def agent_count(self) -> int:
        """The number of agents n."""
        return len(self.agents_info["host"])

    @property
    def curves(self) -> dict[str, Array]:
        """Every scalar series by name: a task's metrics plainly, others as ``consensus/x``."""
        named = {f"consensus/{name}": curve for name, curve in self.consensus.items()}
        named |= {f"invariant/{name}": curve for name, curve in self.invariant.items()}
        measured = ("stationarity", "stationarity_residual", "lipschitz")
        return {**self.task, **named, **{name: getattr(self, name) for name in measured}}


def read_run(path: str | Path) -> RunData:
    """Read a run file, also while it is being written and after its writer was killed.

    Raises:
        UsageError: There is no such file, it is no run file or one of another version, or it is
            damaged.
    """
    path = Path(path)
    with opened(path) as file:
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        attributes = _attributes(file)
        config = _config(attributes.pop("config", "{}"))
        agents, edges = len(file["agents"]["host"]), len(file["topology/edges"])
        return RunData(
            path=path,
            status=attributes["status"],
            modified=modified,
            attributes=attributes,
            config=config,
            weights=_weights(file["topology/weights"], agents),
            edges=_numbers(file, "topology/edges", (edges, 2), edges),
            agents_info={name: _facts(file["agents"], name, agents) for name in FACTS},
            planned=len(file["metrics"]["iteration"]),
            final={name: saved.shape for name, saved in file.get("final", {}).items()},
            **_series(file["metrics"], agents, edges),
        )


def read_final(path: str | Path) -> dict[str, Array]:
    """Return the last iterates of all agents, shape (n, d) for every variable.

    Raises:
        UsageError: It is no run file, a damaged one, or the run was not asked to save them.
    """
    with opened(Path(path)) as file:
        if "final" not in file:
            raise UsageError(f"'{path}' holds no final iterates: run again with --save-final.")
        return {name: saved[()] for name, saved in file["final"].items()}


def _attributes(file: h5py.File) -> dict[str, Any]:
    found = {name: _plain(value) for name, value in file.attrs.items()}
    for name, value in found.items():
        if not isinstance(value, str | int | float):
            raise ValueError(f"its attribute '{name}' is neither a text nor a number")
        if isinstance(value, str):
            value.encode()  # Flipped bytes are read as surrogates, which cannot be printed.
    if found.get("status") not in STATUSES or not isinstance(found.get("ended"), str):
        raise ValueError("its attributes say no known status, or not when it ended")
    if isinstance(found.get("rho"), str):
        raise ValueError(f"its attribute 'rho' is '{found['rho']}', not a number")
    return found


def _config(text: Any) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"its config is not JSON ({error})") from error
    if not isinstance(config, dict):
        raise TypeError("its config is not a table of options")
    return config


def _series(metrics: h5py.Group, agents: int, edges: int) -> dict[str, Any]:
    # Read before the rows: these are complete on disk as soon as the counter covers them.
    rows, planned = int(metrics["rows"][()]), len(metrics["iteration"])
    if not 0 <= rows <= planned:
        raise ValueError(f"it counts {rows} evaluations, expected 0 to the {planned} planned ones")

    def read(path: str, *shape: int) -> Array:
        return _numbers(metrics, path, (planned, *shape), rows)

    series: dict[str, Any] = {name: read(name) for name in SCALARS}
    if not all(np.isfinite(series[name]).all() for name in ("elapsed_s", "wall_s")):
        raise ValueError("evaluations that count have no time")
    series["edge_bytes"] = read("edges/bytes", edges)
    series["agents"] = {
        name: read(f"agents/{name}", agents)
        for name in COSTS
        if name in metrics["agents"] or name not in LATER_COSTS
    }
    series["task"] = {name: read(f"task/{name}") for name in metrics["task"]}
    for group in ("consensus", "invariant"):
        series[group] = {name: read(f"{group}/{name}") for name in metrics["consensus"]}
    return series


def _numbers(parent: h5py.Group, path: str, shape: tuple[int, ...], rows: int) -> Array:
    """Return the first rows of a data set that must hold numbers and have the shape."""
    path.encode()
    stored = parent[path]
    if stored.shape != shape or stored.dtype.kind not in "iuf":
        raise ValueError(
            f"'{path}' holds {stored.dtype} of shape {stored.shape}, expected numbers of {shape}"
        )
    return np.asarray(stored[:rows])


def _weights(stored: h5py.Dataset | h5py.Group, agents: int) -> csr_array:
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


def _facts(group: h5py.Group, name: str, agents: int) -> Array:
    facts = group[name]
    text = h5py.check_string_dtype(facts.dtype) is not None
    if facts.shape != (agents,) or text != (FACTS[name] is str):
        raise ValueError(f"'{name}' holds {facts.dtype} of shape {facts.shape} for {agents} agents")
    column: Array = np.array(facts.asstr()[()], dtype=str) if text else facts[()]
    return column


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value
