"""The run file while it is being written, by rank 0 alone."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.runfile.appending import Series
from sundsbo_mpi.runfile.columns import Columns, widened
from sundsbo_mpi.runfile.contents import empty, read_contents
from sundsbo_mpi.runfile.locking import held
from sundsbo_mpi.runfile.naming import (
    OutputExistsError,
    check_writable,
    default_path,
    publish,
    replace_with,
)
from sundsbo_mpi.runfile.opening import opened
from sundsbo_mpi.runfile.placing import Placed, place, unwritable
from sundsbo_mpi.runfile.resuming import NEW, Continuation, resumed
from sundsbo_mpi.runfile.schema import STATUSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sundsbo_mpi.runfile.events import Event
    from sundsbo_mpi.runfile.schema import Array, Row, RunPlan


class RunFile:
    """A run file that can be read at any moment, whether its writer is alive, done or killed.

    ``create`` and ``resume`` make one.  From then on bytes are only overwritten in place, and a row
    counts only when all of it has been written; what needs another layout is done in a copy, which
    takes the file's name when it is complete.
    """

    def __init__(self, path: Path, placed: Placed, columns: Columns) -> None:
        self.path = path
        self._placed = placed
        self._series = Series(placed.file["metrics"], columns)

    @classmethod
    def create(cls, path: str | Path, plan: RunPlan, overwrite: bool = False) -> Self:
        """Make a new run file, which appears under its name when it is readable.

        Raises:
            OutputExistsError: The file exists and ``overwrite`` is off (a ``UsageError``).
            UsageError: The directory is missing, full or cannot be written, or another run is
                writing the file, or a name in the plan cannot be stored.
        """
        path = Path(path)
        contents = empty(plan)
        check_writable(path, overwrite)
        placed = place(path, contents, partial(publish, overwrite=overwrite))
        return cls(path, placed, Columns(np.arange(plan.agents), np.arange(len(plan.edges))))

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

    @classmethod
    def resume(cls, path: str | Path, how: Continuation, agents: Array | None = None) -> Self:
        """Go on with the file of a run from a checkpoint: later evaluations are dropped.

        The file stays as it is until that has been done in a copy of it.

        Args:
            path: The run file.
            how: What the run is and where it goes on.
            agents: The numbers in the file of those who go on, (n',); all, if left out.

        Raises:
            UsageError: The file is gone, damaged, being written by another run or that of another
                run, or lacks evaluations, or it cannot be written.
        """
        path = Path(os.path.realpath(path))
        if not path.is_file():
            raise UsageError(
                f"the run file '{path}' is gone: put it back, or {NEW} for what follows."
            )
        try:
            with held(path):
                with opened(path) as file:
                    contents = resumed(path, read_contents(file), how)
                here = np.arange(contents.agents) if agents is None else agents
                contents, columns = widened(contents, here, how.edges)
                return cls(path, place(path, contents, replace_with), columns)
        except OSError as error:
            raise unwritable(path, error) from error

    @property
    def locked(self) -> bool:
        """Whether a lock keeps other runs away, which not all file systems have."""
        return self._placed.disk.locked

    @property
    def last(self) -> int:
        """The iteration of the last evaluation, -1 where there is none."""
        return self._series.last

    def append(self, row: Row) -> None:
        """Write one evaluation and let it count.

        Raises:
            UsageError: The task reports other names than it did at iteration 0, or the file
                cannot be written any more; it keeps the earlier evaluations.
            ValueError: More rows than planned, or an array of another shape than planned.
        """
        self._series.write(row)
        # The counter must never reach the disk before the row that it counts.
        self._settle()
        self._series.count()
        self._settle()
        self._series.rows += 1

    def note(
        self, events: Sequence[Event], agents: Array | None = None, edges: Array | None = None
    ) -> None:
        """Write down events, in a copy of the file that takes its place.

        Args:
            events: What has happened.
            agents: With ``edges``, the numbers in the file of the agents that rows are of from now
                on, (n',), in their order.
            edges: The edges between them, (E', 2), where they count from 0.

        Raises:
            UsageError: It cannot be written; the file is as before, and can be written further.
        """
        self._settle()
        old = self._placed
        contents, columns = read_contents(old.file), self._series.columns
        if agents is not None and edges is not None:
            contents, columns = widened(contents, agents, edges)
        contents = replace(contents, events=(*contents.events, *events))
        self._placed = place(self.path.resolve(), contents, replace_with, source=old.file)
        self._series = Series(self._placed.file["metrics"], columns)
        old.close()

    def write_final(self, variable: str, agent: int, value: Array) -> None:
        """Write one agent's last iterate of a variable, of shape (d,), planned by ``save_final``.

        Raises:
            UsageError: The file cannot be written any more.
            ValueError: An array of another length than planned.
        """
        target = self._placed.file["final"][variable]
        if np.shape(value) != target.shape[1:]:
            raise ValueError(f"{variable} has shape {np.shape(value)}, planned {target.shape[1:]}")
        target[self._series.columns.agents[agent]] = value
        self._settle()

    def sync(self) -> None:
        """Wait until the disk has all rows, so that they outlive a power cut.

        Raises:
            UsageError: The file cannot be written any more.
        """
        self._placed.disk.sync()
        self._settle()

    def finish(self, status: str) -> None:
        """Say how the run ended, ``finished``, ``failed`` or ``interrupted``, and when (UTC).

        Raises:
            UsageError: The file cannot be written any more.
        """
        if status not in STATUSES[1:]:
            raise ValueError(f"status '{status}' is none of {STATUSES[1:]}")
        self._settle()
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        attributes = self._placed.file.attrs
        attributes.modify("ended", np.bytes_(ended))
        self._settle()
        attributes.modify("status", np.bytes_(status))
        self._settle()

    def close(self) -> None:
        """Close the file and release its lock."""
        self._placed.close()

    def _settle(self) -> None:
        """Hand everything to the disk and see that it took it."""
        disk = self._placed.disk
        with disk.blamed():
            self._placed.file.flush()
        if disk.removed:
            raise UsageError(
                f"the run file '{self.path}' was removed or replaced while the run wrote it: go on "
                "from the last checkpoint with 'sundsbo-mpi resume DIR --output NEW.h5', or run "
                "again."
            )
        try:
            disk.check()
        except OSError as error:
            raise UsageError(
                f"the run file '{self.path}' cannot be written any more: {reason(error)}; its "
                f"{self._series.rows} evaluations are kept: remove the cause and go on from the "
                "last checkpoint with 'sundsbo-mpi resume', or run again."
            ) from error
