"""A file of which the end is missing, as HDF5 agrees to open it: with zeros in its place."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from typing_extensions import Buffer

SIGNATURE = b"\x89HDF\r\n\x1a\n"


class PaddedFile(io.RawIOBase):
    """Reads a file; between its end and the end that its HDF5 header speaks of there are zeros.

    Raises:
        OSError: The file cannot be read, or does not begin as an HDF5 file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("rb")
        self.real = os.fstat(self._file.fileno()).st_size
        """Bytes that the file has."""
        header = self._file.read(48)
        if not header.startswith(SIGNATURE):
            self.close()
            raise OSError("file signature not found")
        # Version 0 of the header, which run files have, tells the length of the file at byte 40.
        told = int.from_bytes(header[40:48], "little") if header[8:9] == b"\0" else 0
        self.size = max(self.real, min(told, 2**62))
        """Bytes that the file had."""
        self._at = 0

    def readinto(self, buffer: Buffer, /) -> int:
        """Read from the present place, which moves on."""
        with memoryview(buffer).cast("B") as view:
            length = max(min(len(view), self.size - self._at), 0)
            found = os.pread(self._file.fileno(), length, self._at)
            view[: len(found)] = found
            view[len(found) : length] = bytes(length - len(found))
        self._at += length
        return length

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

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
