"""Opens a run file for reading, and says in one sentence what is wrong with it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import h5py

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile.schema import FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterator

# What h5py, NumPy, SciPy and json raise on damaged content.
DAMAGED = (
    OSError,
    LookupError,
    AttributeError,
    TypeError,
    ValueError,
    RuntimeError,
    OverflowError,
    MemoryError,
)


@contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """Open a run file; whatever its content breaks while it is open is said to be damage.

    Raises:
        UsageError: There is no such file, it is no run file or one of another version, or it is
            damaged.
    """
    try:
        with _open(path) as file:
            _check_format(file, path)
            yield file
    except DAMAGED as error:
        said = error.args[0] if isinstance(error, KeyError) else error
        reason = " ".join(str(said).split()).rstrip(".") or type(error).__name__
        raise UsageError(
            f"'{path}' is damaged: {reason}; take an undamaged copy, or run again with --overwrite."
        ) from error


def _open(path: Path) -> h5py.File:
    if not path.is_file():
        raise UsageError(
            f"there is no run file '{path}': expected the .h5 file of a run; give the name that "
            "the run wrote to."
        )
    try:
        # The writer keeps its lock for as long as it runs; it must not keep readers away.
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        raise UsageError(
            f"'{path}' cannot be read as an HDF5 file ({error}): expected the .h5 file of a run; "
            "give another file, or run again if this one is damaged."
        ) from None


def _check_format(file: h5py.File, path: Path) -> None:
    found = file.attrs.get("format")
    if not isinstance(found, str) or found != FORMAT:
        named = f"the format '{found}'" if isinstance(found, str) else "no format that can be read"
        raise UsageError(
            f"'{path}' has {named}, expected '{FORMAT}': it is no run file, or one of another "
            "version of sundsbo-mpi; read it with the version that wrote it."
        )
