"""Who may write a file: one process at a time, by the lock that programs with HDF5 heed too."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sundsbo_mpi.durable import lock
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep the lock of the file that has this name, so that nobody else replaces or writes it.

    Raises:
        UsageError: Another run has it.
        OSError: There is no such file, or it cannot be opened.
    """
    descriptor = _opened(path)
    try:
        try:
            lock(descriptor)
        except BlockingIOError:
            raise _in_use(path) from None
        # Between the opening and the lock another run may have put its own file there.
        if not os.path.samestat(path.stat(), os.fstat(descriptor)):
            raise _in_use(path)
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    # O_NONBLOCK, or a pipe of this name would be waited for.
    try:
        return os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except PermissionError:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def _in_use(path: Path) -> UsageError:
    return UsageError(
        f"another run is writing '{path}': wait for it to end or choose another --output."
    )
