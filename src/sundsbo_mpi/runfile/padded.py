"""A file of which the end is missing, as HDF5 agrees to open it: with zeros in its place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sundsbo_mpi.runfile.random_access import RandomAccess

if TYPE_CHECKING:
    from pathlib import Path

SIGNATURE = b"\x89HDF\r\n\x1a\n"


class PaddedFile(RandomAccess):
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
        self._size = max(self.real, min(told, 2**62))

    @property
    def size(self) -> int:
        """Bytes that the file had."""
        return self._size

    def read_at(self, at: int, length: int) -> bytes:
        """Return the bytes from a place on, fewer where the file had its end."""
        found = os.pread(self._file.fileno(), length, at)
        return found.ljust(max(min(length, self.size - at), 0), b"\0")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
