"""The run file while it is being written, by rank 0 alone."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import h5py
import numpy as np

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile.naming import (
    OutputExistsError,
    check_space,
    check_writable,
    default_path,
    publish,
    temporary,
)
from sundsbo_mpi.runfile.schema import STATUSES, lay_out, series, size, values

if TYPE_CHECKING:
    from sundsbo_mpi.runfile.schema import Array, Row, RunPlan


class RunFile:
    """A run file that can be read at any moment, whether its writer is alive, done or killed.

    The constructor fills an empty, writable ``file``; ``create`` makes one on disk.  From then on
    bytes are only overwritten in place, and a row counts only when all of it has been flushed.
    """

    def __init__(self, file: h5py.File, plan: RunPlan) -> None:
        self._file = file
        self._series = series(plan)
        self._rows = 0
        self._planned = plan.rows
        self.path = Path(os.fsdecode(file.filename))
        lay_out(file, plan)
        file.flush()

    @classmethod
    def create(cls, path: str | Path, plan: RunPlan, overwrite: bool = False) -> Self:
        """Make a new run file, which appears under its name when it is readable.

        Raises:
            OutputExistsError: The file exists and ``overwrite`` is off (a ``UsageError``).
            UsageError: The directory is missing, full or cannot be written, or another run is
                writing the file, or a name in the plan cannot be stored.
        """
        path = Path(path)
        check_writable(path, overwrite)
        try:
            return cls._place(path, plan, overwrite)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise UsageError(
                f"cannot write '{path}': {reason}; choose another --output."
            ) from error

    @classmethod
    def create_default(
        cls, task: str, algorithm: str, plan: RunPlan, directory: Path = Path()
    ) -> Self:
        """Make a new run file under an unused name, whatever other runs start meanwhile.

        Raises:
            UsageError: The directory is missing or cannot be written.
        """
        now = datetime.now().astimezone()
        while True:
            with contextlib.suppress(OutputExistsError):
                return cls.create(default_path(task, algorithm, now, directory), plan)

    def append(self, row: Row) -> None:
        """Write one evaluation and let it count.

        Raises:
            UsageError: The task reports other names than it did at iteration 0.
            ValueError: More rows than planned, or an array of another shape than planned.
        """
        if self._rows == self._planned:
            raise ValueError(f"row {self._rows} of a run planned with {self._planned} rows")
        metrics = self._file["metrics"]
        for path, value in self._checked(row).items():
            metrics[path][self._rows] = value
        # The counter must never reach the disk before the row that it counts.
        self._file.flush()
        self._rows += 1
        metrics["rows"][()] = self._rows
        self._file.flush()

    def write_final(self, variable: str, agent: int, value: Array) -> None:
        """Write one agent's last iterate of a variable, of shape (d,), planned by ``save_final``.

        Raises:
            ValueError: An array of another length than planned.
        """
        target = self._file["final"][variable]
        if np.shape(value) != target.shape[1:]:
            raise ValueError(f"{variable} has shape {np.shape(value)}, planned {target.shape[1:]}")
        target[agent] = value

    def finish(self, status: str) -> None:
        """Say how the run ended, ``finished``, ``failed`` or ``interrupted``, and when (UTC)."""
        if status not in STATUSES[1:]:
            raise ValueError(f"status '{status}' is none of {STATUSES[1:]}")
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        self._file.attrs.modify("ended", np.bytes_(ended))
        self._file.flush()
        self._file.attrs.modify("status", np.bytes_(status))
        self._file.flush()

    def close(self) -> None:
        """Close the file and release its lock."""
        self._file.close()

    def _checked(self, row: Row) -> dict[str, Any]:
        table = values(row)
        odd = sorted(table.keys() ^ self._series.keys())
        if odd:
            raise UsageError(
                f"iteration {row.iteration} and the plan of the run differ in {', '.join(odd)}: "
                "a task must report the same names at every evaluation."
            )
        for path, value in table.items():
            if np.shape(value) != self._series[path][0]:
                raise ValueError(f"{path} has shape {np.shape(value)}, not {self._series[path][0]}")
        return table

    @classmethod
    def _place(cls, path: Path, plan: RunPlan, overwrite: bool) -> Self:
        hidden = temporary(path)
        check_space(hidden, size(plan))
        file = h5py.File(hidden, "w-", locking="best-effort")
        try:
            run = cls(file, plan)
            publish(hidden, path, overwrite)
        except BaseException:
            # A full disk makes closing fail as well; the first reason is the one to tell.
            with contextlib.suppress(OSError, RuntimeError):
                file.close()
            hidden.unlink(missing_ok=True)
            raise
        run.path = path
        return run
