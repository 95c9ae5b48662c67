"""What writers need of the file system: a lock, and names that outlive a power cut."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, 524})
"""What file systems without locks answer; 524 is the kernel's own ENOTSUPP, which some let out."""


def lock(descriptor: int) -> bool:
    """Take the lock of an open file, until it is closed; False where the file system has none.

    Raises:
        BlockingIOError: Another process has it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    return True


def settle(folder: Path) -> None:
    """Let the names in a folder outlive a power cut, where the file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
