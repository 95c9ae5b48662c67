"""Writes evaluations into the series of a run file that is laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile.columns import Columns
from sundsbo_mpi.runfile.contents import CHECK, check_sums, stored_paths
from sundsbo_mpi.runfile.schema import values

if TYPE_CHECKING:
    import h5py

    from sundsbo_mpi.runfile.schema import Array, Row


class Series:
    """The series below ``metrics`` of an open file, and where the ``columns`` of a row stand."""

    def __init__(self, metrics: h5py.Group, columns: Columns) -> None:
        self.columns = columns
        self._check = metrics[CHECK]
        self._counter = metrics["rows"]
        self._stored = {path: metrics[path] for path in stored_paths(metrics)}
        self.rows = int(self._counter[()])
        """Evaluations that count."""
        self.planned = len(self._stored["iteration"])

    @property
    def last(self) -> int:
        """The iteration of the last evaluation, -1 where there is none."""
        return int(self._stored["iteration"][self.rows - 1]) if self.rows else -1

    def write(self, row: Row) -> None:
        """Write a row behind those that count, without counting it.

        Raises:
            UsageError: It has other names than the file.
            ValueError: There is no room for it, or an array has another shape than planned.
        """
        if self.rows == self.planned:
            raise ValueError(f"row {self.rows} of a run planned with {self.planned} rows")
        table = {path: self._spread(path, value) for path, value in self._checked(row).items()}
        for path, value in table.items():
            self._stored[path][self.rows] = value
        self._check[self.rows] = check_sums({path: value[None] for path, value in table.items()})[0]

    def count(self) -> None:
        """Write that the row that was written last counts; ``rows`` grows when that is certain."""
        self._counter[()] = self.rows + 1

    def _spread(self, path: str, value: Any) -> Array:
        stored = self._stored[path]
        own: Array = np.asarray(value).astype(stored.dtype)
        if own.shape == stored.shape[1:] and self.columns.in_order(path):
            return own
        last = stored[self.rows - 1] if self.rows else np.zeros(stored.shape[1:], own.dtype)
        return self.columns.spread(path, own, last)

    def _checked(self, row: Row) -> dict[str, Any]:
        table = values(row)
        odd = sorted(table.keys() ^ self._stored.keys())
        if odd:
            raise UsageError(
                f"iteration {row.iteration} and the plan of the run differ in {', '.join(odd)}: "
                "a task must report the same names at every evaluation."
            )
        for path, value in table.items():
            if np.shape(value) != (shape := self.columns.shape(path)):
                raise ValueError(f"{path} has shape {np.shape(value)}, not {shape}")
        return table
