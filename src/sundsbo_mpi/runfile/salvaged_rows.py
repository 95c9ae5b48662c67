"""Which evaluations of a damaged run file are whole, and which of their numbers."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.runfile.contents import CHECK, check_sums
from sundsbo_mpi.runfile.opening import DAMAGED
from sundsbo_mpi.runfile.schema import COSTS, LATER_COSTS, row_shape, series_paths

if TYPE_CHECKING:
    import h5py

    from sundsbo_mpi.runfile.schema import Array

ESSENTIAL = ("iteration", "elapsed_s", "wall_s")
"""Series without which a row says nothing."""


def whole_rows(stored: h5py.Dataset, real: int) -> int:
    """Count the first rows of a data set that lie within the ``real`` bytes of its file."""
    size = stored.dtype.itemsize * math.prod(stored.shape[1:])
    if size * len(stored) == 0:
        return len(stored)
    place = stored.id.get_offset()
    # Where a file names no place, nothing was written, or it is not laid out as run files are.
    return 0 if place is None else int(np.clip((real - place) // size, 0, len(stored)))


class Rows:
    """The whole evaluations of a file: ``series`` as in ``Contents``, with NaN for what is lost.

    Args:
        metrics: The group of the series.
        real: Bytes of the file that are there.
        agents: Their number n.
        edges: Their number E.

    Raises:
        Exception: One of DAMAGED, where no evaluation is whole.
    """

    def __init__(self, metrics: h5py.Group, real: int, agents: int, edges: int) -> None:
        self._metrics, self._real = metrics, real
        self.planned = self._whole_planned()
        self.lost: list[str] = []
        """Names of what is missing."""
        paths = self._paths()
        named = not self.lost
        columns = {}
        self._whole = {}
        for path in paths:
            shape = (self.planned, *row_shape(path, agents, edges))
            columns[path], self._whole[path] = self._column(path, shape)
        kept = self._kept(columns, named)
        if not len(kept):
            raise ValueError("its rows are empty, or do not match their check sums")
        self.series: dict[str, Array] = {
            path: self._with_gaps(path, column, kept) for path, column in columns.items()
        }

    def _whole_planned(self) -> int:
        """Return the number of planned rows, of which the file must have room for the first."""
        iteration = self._metrics["iteration"]
        if len(iteration.shape) != 1 or not whole_rows(iteration, self._real):
            raise ValueError("the numbers of its iterations are missing")
        if len(iteration) * 8 > self._real:
            # A row takes more than one number: that many were never in the file.
            raise ValueError("its size does not fit its rows")
        return len(iteration)

    def _paths(self) -> list[str]:
        task, variables = self._names("task"), self._names("consensus")
        costs = [name for name in COSTS if name not in LATER_COSTS or self._has(f"agents/{name}")]
        return series_paths(task, variables, costs)

    def _names(self, group: str) -> list[str]:
        try:
            names = list(self._metrics[group])
            "".join(names).encode()
        except DAMAGED:
            self.lost.append(f"all of {group}")
            return []
        return names

    def _has(self, path: str) -> bool:
        try:
            return path in self._metrics
        except DAMAGED:
            return True  # and is lost

    def _column(self, path: str, shape: tuple[int, ...]) -> tuple[Array, Array]:
        """Return a whole series, and which of its rows are there."""
        column, whole = np.full(shape, np.nan), 0
        with suppress(*DAMAGED):
            stored = self._metrics[path]
            if stored.shape == shape and stored.dtype.kind in "iuf":
                there = whole_rows(stored, self._real)
                found = np.zeros(shape, stored.dtype)
                found[:there] = stored[:there]
                column, whole = found, there
        return column, np.arange(self.planned) < whole

    def _kept(self, columns: dict[str, Array], named: bool) -> Array:
        """Return the numbers of the rows that are whole, or of which the essential part is."""
        iteration = columns["iteration"]
        here = np.logical_and.reduce([self._whole[path] for path in ESSENTIAL])
        here &= iteration >= 0
        here &= np.isfinite(columns["elapsed_s"]) & np.isfinite(columns["wall_s"])
        checks, checked = self._column(CHECK, (self.planned,))
        checked &= np.logical_and.reduce(list(self._whole.values())) & named
        matching = checks == check_sums(columns) if checked.any() else checked
        rows = np.flatnonzero(np.where(checked, matching & here, here & self._counted()))
        # Numbers that do not grow were altered.
        largest = np.maximum.accumulate(iteration[rows])
        return rows[np.diff(largest, prepend=-1) > 0]

    def _counted(self) -> Array:
        """Return which rows count, all of them where the counter is lost."""
        rows = self.planned
        with suppress(*DAMAGED):
            stored = self._metrics["rows"]
            found = int(stored[()])
            if stored.id.get_offset() + stored.dtype.itemsize <= self._real and found >= 0:
                rows = min(found, rows)
        return np.arange(self.planned) < rows

    def _with_gaps(self, path: str, column: Array, kept: Array) -> Array:
        gaps = ~self._whole[path][kept]
        if not gaps.any():
            return column[kept]
        self.lost.append(path)
        real = column[kept].astype(np.float64)
        real[gaps] = np.nan
        return real
