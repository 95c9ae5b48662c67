"""Puts a whole new file in its place: under a hidden name first, renamed when it is readable."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import h5py

from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.runfile.disk import Disk
from sundsbo_mpi.runfile.layout import store
from sundsbo_mpi.runfile.naming import temporary

if TYPE_CHECKING:
    from sundsbo_mpi.runfile.contents import Contents


class Placed:
    """A new file that is open for writing, and its bytes; ``close`` ends both."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.file = h5py.File(disk, "w")

    def close(self) -> None:
        """Close the file and give back its lock."""
        with self.disk.blamed():
            self.file.close()
        self.disk.close()


def place(
    path: Path,
    contents: Contents,
    publish: Callable[[Path, Path], None],
    source: h5py.File | None = None,
) -> Placed:
    """Write a run file that appears under its name when it is complete and on the disk.

    Until then a file that has the name stays as it is; whatever fails leaves nothing behind.

    Args:
        path: The name.
        contents: What the file is to hold.
        publish: Gives the file at the first path the name that is the second.
        source: Whose final iterates are copied.

    Raises:
        UsageError: The directory is missing, full or cannot be written, or ``publish`` refuses.
    """
    target = Path(os.path.realpath(path))  # not a link that leads there
    hidden = temporary(target)
    placed = _begun(hidden, path)
    try:
        store(placed.file, contents, source)
        placed.file.flush()
        placed.disk.sync()
        placed.disk.check()
        publish(hidden, target)
    except BaseException as error:
        placed.close()
        hidden.unlink(missing_ok=True)
        cause = placed.disk.trouble or error
        if isinstance(cause, OSError):
            raise unwritable(path, cause) from error
        raise
    return placed


def _begun(hidden: Path, path: Path) -> Placed:
    try:
        disk = Disk(hidden)
    except OSError as error:
        raise unwritable(path, error) from error
    return Placed(disk)


def unwritable(path: Path, error: OSError) -> UsageError:
    """Say why the file could not be made."""
    return UsageError(f"cannot write '{path}': {reason(error)}; choose another --output.")
