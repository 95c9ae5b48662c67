"""What is whole in a damaged run file: every number that still stands where it was written.

Of a file without its end, whole series may be missing, or the later rows of some; what is missing
becomes NaN.  Of a file with altered bytes, rows that do not match their check sum are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import h5py
import numpy as np

from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.runfile.contents import (
    Contents,
    read_attribute,
    read_counts,
    read_events,
    read_fact,
    read_weights,
)
from sundsbo_mpi.runfile.opening import DAMAGED, check_format, check_there
from sundsbo_mpi.runfile.padded import PaddedFile
from sundsbo_mpi.runfile.salvaged_rows import Rows, whole_rows
from sundsbo_mpi.runfile.schema import FACTS, LABEL_COUNTS, STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scipy.sparse import csr_array

    from sundsbo_mpi.runfile.schema import Array

T = TypeVar("T")
UNKNOWN: dict[str, Any] = {"host": "unknown", "device": "unknown"}
"""What is said of an agent where ``/agents`` is lost; numbers are 0."""
NAMED = 5
"""How many lost things are named."""


@dataclass(frozen=True)
class Salvage:
    """What is whole, and a sentence on what is not; ``file`` is open to copy final iterates."""

    contents: Contents
    sentence: str
    file: h5py.File


@contextmanager
def salvaged(path: Path) -> Iterator[Salvage]:
    """Find what is whole in a run file.

    Raises:
        UsageError: There is no such file, it is no run file, or no evaluation in it is whole.
    """
    check_there(path)
    with _padded(path) as (file, padded):
        try:
            if padded.real == padded.size or "format" in file.attrs:
                check_format(file, path)
            found = _Head(file, padded.real)
            contents, sentence = found.contents(path)
        except DAMAGED as error:
            raise UsageError(
                f"'{path}' is damaged, and no evaluation in it is whole ({reason(error)}): take an "
                "undamaged copy, or run again with --overwrite."
            ) from error
        yield Salvage(contents, sentence, file)


@contextmanager
def _padded(path: Path) -> Iterator[tuple[h5py.File, PaddedFile]]:
    try:
        padded = PaddedFile(path)
        file = h5py.File(padded, "r")
    except DAMAGED as error:
        raise UsageError(
            f"'{path}' cannot be read as an HDF5 file ({reason(error)}): expected the .h5 file of "
            "a run; give another file, or an undamaged copy of this one."
        ) from error
    with padded, file:
        yield file, padded


@dataclass
class _Head:
    """Finds what is whole in an open file of which the first ``real`` bytes are there."""

    file: h5py.File
    real: int
    lost: list[str] = field(default_factory=list)

    def contents(self, path: Path) -> tuple[Contents, str]:
        """Return what is whole, and what is not; one of DAMAGED where no evaluation is."""
        from scipy.sparse import csr_array

        agents = self._agents()
        weights = self._read("topology/weights", lambda: self._weights(agents))
        edges = self._read("topology/edges", self._edges)
        edges = np.empty((0, 2), np.int64) if edges is None else edges
        rows = Rows(self.file["metrics"], self.real, agents, len(edges))
        self.lost += rows.lost
        contents = Contents(
            attributes=self._attributes(path),
            weights=csr_array((0, agents)) if weights is None else weights,
            edges=edges,
            agents_info=self._agents_info(agents),
            planned=rows.planned,
            series=rows.series,
            events=self._read("events", lambda: read_events(self.file)) or (),
            final=self._final(),
        )
        return contents, self._sentence(rows.series["iteration"], rows.planned)

    def _sentence(self, iteration: Array, planned: int) -> str:
        words = (
            f"{len(iteration)} of {planned} planned evaluations are whole, from iteration "
            f"{iteration[0]:.0f} to {iteration[-1]:.0f}"
        )
        if not self.lost:
            return words
        more = [f"{len(self.lost) - NAMED} more"] if len(self.lost) > NAMED else []
        return f"{words}; lost: {', '.join([*self.lost[:NAMED], *more])}"

    def _read(self, name: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except DAMAGED:
            self.lost.append(name)
            return None

    def _attributes(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self.file.attrs:
            with suppress(*DAMAGED):
                name.encode()
                found[name] = read_attribute(self.file, name)
        found.pop("format", None)
        if isinstance(found.get("rho"), str):
            del found["rho"]
        if not _is_table(found.get("config", "{}")):
            self.lost.append("config")
            del found["config"]
        if found.get("status") not in STATUSES[1:]:
            found["status"] = "interrupted"
        if not found.get("ended"):
            written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            found["ended"] = written.isoformat(timespec="seconds")
        return found

    def _agents(self) -> int:
        """Return the number of agents, from wherever it can be read."""
        for place in (*(f"agents/{name}" for name in FACTS), "metrics/agents/rounds"):
            with suppress(*DAMAGED):
                return int(self.file[place].shape[-1])
        return int(self.file["topology/weights"].shape[1])

    def _weights(self, agents: int) -> csr_array:
        stored = self.file["topology/weights"]
        parts = [stored] if isinstance(stored, h5py.Dataset) else list(stored.values())
        for part in parts:
            self._require_whole(part)
        return read_weights(stored, agents)

    def _edges(self) -> Array:
        stored = self.file["topology/edges"]
        self._require_whole(stored)
        edges: Array = stored[()].astype(np.int64)
        if edges.shape[1:] != (2,):
            raise ValueError
        return edges

    def _agents_info(self, agents: int) -> dict[str, Array]:
        info = {name: self._fact(name, agents) for name in FACTS}
        told: list[str] = []
        with suppress(*DAMAGED):
            told = [name for name in LABEL_COUNTS if name in self.file["agents"]]
        for name in told:
            counts = self._read(f"agents/{name}", partial(self._counts, name, agents))
            info |= {} if counts is None else {name: counts}
        return info

    def _counts(self, name: str, agents: int) -> Array:
        self._require_whole(self.file["agents"][name])
        return read_counts(self.file["agents"], name, agents)

    def _fact(self, name: str, agents: int) -> Array:
        def read() -> Array:
            self._require_whole(self.file["agents"][name])
            return read_fact(self.file["agents"], name, agents)

        fact = self._read(f"agents/{name}", read)
        return np.full(agents, UNKNOWN.get(name, 0)) if fact is None else fact

    def _final(self) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        whole = {}
        names = self._read("final", lambda: list(self.file.get("final", ()))) or []
        for name in names:
            with suppress(*DAMAGED):
                saved = self.file["final"][name]
                self._require_whole(saved)
                whole[name] = (saved.shape, saved.dtype)
        self.lost += [f"final/{name}" for name in names if name not in whole]
        return whole

    def _require_whole(self, stored: h5py.Dataset) -> None:
        if whole_rows(stored, self.real) < len(stored):
            raise ValueError("its end is missing")


def _is_table(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError, RecursionError):
        return False
