"""Follows a run by its file, from before there is one to the end of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import DamagedError, read_run
from sundsbo_mpi.summary import age
from sundsbo_mpi.texttable import duration

if TYPE_CHECKING:
    from sundsbo_mpi.runfile import RunData

EVERY_SECONDS = 1.0
"""Between two looks at the file."""
FRESH_SECONDS = 5.0
"""For so long after a file's last change another one need not show in its time."""
TRIES = 3
"""Looks in a row that may find a file half written, as network file systems show it at times."""


class Reader:
    """Reads a run file again only where it may have changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: tuple[int, ...] = ()
        self._run: RunData | None = None
        self._failed = 0

    def look(self) -> RunData | None:
        """Return the run as it is now; None as long as there is no file.

        Raises:
            UsageError: It is no run file, or it was damaged at several looks in a row, or it was
                there and is gone.
        """
        if self._run is None and not self._path.exists():
            return None
        mark = self._changes()
        if mark == self._mark and self._run is not None and age(self._run) > FRESH_SECONDS:
            return self._run
        try:
            self._run, self._mark, self._failed = read_run(self._path), mark, 0
        except DamagedError:
            self._failed += 1
            if self._failed >= TRIES:
                raise
        return self._run

    def _changes(self) -> tuple[int, ...]:
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino


def follow(
    path: Path, patience: float, sleep: Callable[[float], None] = time.sleep
) -> Iterator[RunData | None]:
    """Yield the run once a second, and None as long as there is no file, until the run has ended.

    One that was interrupted and keeps checkpoints has not: its job may come again.  Nothing is
    locked: whoever writes the file does not notice.

    Args:
        path: The run file.
        patience: Seconds without any news after which there will be none.
        sleep: Waits for so many seconds.

    Raises:
        UsageError: There was no news for too long, or the file cannot be read.
    """
    reader = Reader(path)
    known: tuple[object, ...] = ()
    quiet = 0.0
    while True:
        run = reader.look()
        yield run
        if run is not None and not may_go_on(run):
            return
        news = () if run is None else (run.rows, run.attributes.get("restarts"), len(run.events))
        quiet = quiet + EVERY_SECONDS if news == known else 0.0
        known = news
        if quiet >= patience:
            if run is not None and run.status != "running":
                return
            raise UsageError(_silence(path, run, patience))
        sleep(EVERY_SECONDS)


def may_go_on(run: RunData) -> bool:
    """Say whether there may be news of the run without anybody's doing."""
    output = run.config.get("output")
    kept = isinstance(output, Mapping) and output.get("checkpoint") is not None
    return run.status == "running" or (run.status == "interrupted" and kept)


def _silence(path: Path, run: RunData | None, patience: float) -> str:
    waited = f"waited {duration(patience)} for"
    if run is None:
        return (
            f"{waited} '{path}', which is not there: has the run made its first evaluation, and "
            "is this its --output? Wait longer with --patience SECONDS."
        )
    done = int(run.iteration[-1]) if run.rows else 0
    return (
        f"{waited} news of '{path}', whose last evaluation is that of iteration {done}: was the "
        "job killed? Look longer with --patience SECONDS."
    )
