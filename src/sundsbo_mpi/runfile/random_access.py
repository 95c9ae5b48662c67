"""Files as HDF5 wants them of Python: with a present place, at which it reads and writes."""

from __future__ import annotations

import io
import os
from abc import abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class RandomAccess(io.RawIOBase):
    """A file that keeps its present place itself; it begins at 0."""

    def __init__(self) -> None:
        super().__init__()
        self._at = 0

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes that there are."""

    @abstractmethod
    def read_at(self, at: int, length: int) -> bytes:
        """Return the bytes from a place on, fewer where there are no more."""

    def readinto(self, buffer: Buffer, /) -> int:
        """Read from the present place, which moves on."""
        with memoryview(buffer).cast("B") as view:
            found = self.read_at(self._at, len(view))
            view[: len(found)] = found
        self._at += len(found)
        return len(found)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Choose the present place."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}
        self._at = start[whence] + offset
        return self._at

    def tell(self) -> int:
        """Return the present place."""
        return self._at

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True
