"""The bytes of a file that HDF5 writes, and what becomes of them when the disk fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sundsbo_mpi.durable import lock
from sundsbo_mpi.runfile.random_access import RandomAccess

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer


class Disk(RandomAccess):
    """A new file under this process's lock, through which HDF5 writes.

    Where a write fails, HDF5 drops data without a word and crashes later on.  It is therefore not
    told: the first failure is kept in ``trouble``, and whatever comes after it is not written.  The
    file is then as a kill at that moment would have left it.

    Args:
        path: A name that is not in use.

    Raises:
        OSError: It is in use, or the directory cannot be written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            self.locked = lock(self._descriptor)
        except OSError:
            os.close(self._descriptor)
            path.unlink()
            raise
        """Whether the file system knows locks."""
        self.trouble: OSError | None = None
        """The first write that failed."""

    @property
    def removed(self) -> bool:
        """Whether no directory has the file any more."""
        return os.fstat(self._descriptor).st_nlink == 0

    def check(self) -> None:
        """Raise the first write's failure as the ``OSError`` that it was."""
        if self.trouble is not None:
            raise self.trouble

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Pass over what HDF5 complains of where a write has failed, and is told of elsewhere.

        It finds nothing where it believes to have written.
        """
        try:
            yield
        except (OSError, RuntimeError):
            if self.trouble is None:
                raise

    def sync(self) -> None:
        """Wait until the disk itself has all that was written."""
        if self.trouble is None:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                self.trouble = error

    def write(self, data: Buffer, /) -> int:
        """Write at the present place, which moves on."""
        with memoryview(data).cast("B") as view:
            done = 0
            while done < len(view) and self.trouble is None:
                try:
                    done += os.pwrite(self._descriptor, view[done:], self._at + done)
                except OSError as error:
                    self.trouble = error
            self._at += len(view)
            return len(view)

    def truncate(self, size: int | None = None, /) -> int:
        """Cut or extend the file."""
        wanted = self._at if size is None else size
        if self.trouble is None:
            try:
                os.ftruncate(self._descriptor, wanted)
            except OSError as error:
                self.trouble = error
        return wanted

    def read_at(self, at: int, length: int) -> bytes:
        """Return the bytes from a place on, fewer where the file ends."""
        return os.pread(self._descriptor, length, at)

    @property
    def size(self) -> int:
        """Bytes that the file has."""
        return os.fstat(self._descriptor).st_size

    def writable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file, which gives back its lock."""
        if not self.closed:
            os.close(self._descriptor)
        super().close()
