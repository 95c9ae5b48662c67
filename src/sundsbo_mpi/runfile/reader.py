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
from sundsbo_mpi.runfile.schema import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sundsbo_mpi.runfile.schema import Array


@dataclass(frozen=True)
class RunData:
    """A run file's contents; every series has one row per evaluation that counts.

    With r rows, n agents and E directed edges: scalar series have shape (r,), those of ``agents``
    (r, n) and ``edge_bytes`` (r, E).  ``weights`` is the (n, n) matrix.  ``planned`` rows were
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
        UsageError: There is no such file, or it is no run file, or one of another version.
    """
    path = Path(path)
    with _open(path) as file:
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        attributes = {name: _plain(value) for name, value in file.attrs.items()}
        config = json.loads(attributes.pop("config", "{}"))
        return RunData(
            path=path,
            status=attributes["status"],
            modified=modified,
            attributes=attributes,
            config=config,
            weights=_weights(file["topology/weights"]),
            edges=file["topology/edges"][()],
            agents_info={name: _column(facts) for name, facts in file["agents"].items()},
            planned=len(file["metrics/iteration"]),
            final={name: saved.shape for name, saved in file.get("final", {}).items()},
            **_series(file["metrics"]),
        )


def read_final(path: str | Path) -> dict[str, Array]:
    """Return the last iterates of all agents, shape (n, d) for every variable.

    Raises:
        UsageError: It is no run file, or the run was not asked to save them.
    """
    with _open(Path(path)) as file:
        if "final" not in file:
            raise UsageError(f"'{path}' holds no final iterates: run again with --save-final.")
        return {name: saved[()] for name, saved in file["final"].items()}


def _open(path: Path) -> h5py.File:
    if not path.is_file():
        raise UsageError(f"there is no run file '{path}': expected the .h5 file of a run.")
    try:
        # The writer keeps its lock for as long as it runs; it must not keep readers away.
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        raise UsageError(
            f"'{path}' cannot be read as an HDF5 file ({error}): expected the .h5 file of a run."
        ) from None
    found = file.attrs.get("format")
    if found != FORMAT:
        file.close()
        raise UsageError(
            f"'{path}' has the format '{found}', expected '{FORMAT}': "
            "it is no run file, or one of another version of sundsbo-mpi."
        )
    return file


def _series(metrics: h5py.Group) -> dict[str, Any]:
    # Read before the rows: these are complete on disk as soon as the counter covers them.
    rows = int(metrics["rows"][()])
    read: dict[str, Any] = {"edge_bytes": metrics["edges/bytes"][:rows]}
    for name, member in metrics.items():
        if isinstance(member, h5py.Dataset) and name != "rows":
            read[name] = member[:rows]
    for group in ("task", "consensus", "invariant", "agents"):
        read[group] = {name: member[:rows] for name, member in metrics[group].items()}
    return read


def _weights(stored: h5py.Dataset | h5py.Group) -> csr_array:
    if isinstance(stored, h5py.Dataset):
        return csr_array(stored[()])
    parts = tuple(stored[name][()] for name in ("data", "indices", "indptr"))
    return csr_array(parts, shape=tuple(stored.attrs["shape"]))


def _column(facts: h5py.Dataset) -> Array:
    text = h5py.check_string_dtype(facts.dtype) is not None
    column: Array = np.array(facts.asstr()[()], dtype=str) if text else facts[()]
    return column


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value
