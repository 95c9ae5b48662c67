"""The bytes of a topology file, unpacked, of which there are never more than a bound."""

from __future__ import annotations

import gzip
import stat
from io import BytesIO
from pathlib import Path

from sundsbo_mpi.errors import UsageError, reason

GZIP = b"\x1f\x8b"
MOST_BYTES = 2**29
"""Half a gigabyte: what 4,096 agents that are all linked take as text."""
MOST_GRAPH_BYTES = 2**25
"""A graph becomes Python objects of many times its size; so many bytes name 300,000 edges."""


def read_file(path: str, most: int) -> bytes:
    """Return what a regular file holds.

    Raises:
        UsageError: There is none that may be read, or it holds more than ``most`` bytes.
    """
    try:
        # Before it is opened: of a pipe that nobody writes to, already that would never end.
        mode = Path(path).stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise UsageError(
                f"cannot read the topology file '{path}': it is a device or a pipe, expected a "
                "regular file; give one."
            )
        with Path(path).open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no topology file '{path}' (looked in {Path.cwd()}): correct the path, or "
            "write one, as with sundsbo-mpi topology ring --agents 10 -o ring.npz."
        ) from error
    except (OSError, ValueError) as error:  # ValueError: the name holds a zero byte
        raise UsageError(
            f"cannot read the topology file '{path}': {reason(error)}; give a file that you may "
            "read."
        ) from error
    return _bounded(content, most)


def unpacked(content: bytes, most: int) -> bytes:
    """Return the bytes, decompressed where they are gzipped.

    Raises:
        UsageError: They are more than ``most``.
        OSError: They are damaged (EOFError, zlib.error).
    """
    if not content.startswith(GZIP):
        return content
    with gzip.GzipFile(fileobj=BytesIO(content)) as file:
        return _bounded(file.read(most + 1), most)


def _bounded(content: bytes, most: int) -> bytes:
    if len(content) > most:
        raise UsageError(
            f"it holds more than {most:,} bytes, which would not fit into memory once read; give "
            "a smaller file, or the weights as a sparse matrix (.npz of SciPy, .mtx)."
        )
    return content
