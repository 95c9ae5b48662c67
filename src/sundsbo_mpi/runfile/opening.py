"""Opens a run file for reading, and says in one sentence what is wrong with it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import h5py

from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.runfile.schema import BENCH_FORMAT, FORMAT

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


class DamagedError(UsageError):
    """A file is not as it was written; ``repairing`` may find whole evaluations in it."""


@contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """Open a run file; whatever its content breaks while it is open is said to be damage.

    Raises:
        DamagedError: It is damaged, or no HDF5 file at all.
        UsageError: There is no such file, or it is no run file or one of another version.
    """
    check_there(path)
    try:
        with _open(path) as file:
            check_format(file, path)
            yield file
    except DAMAGED as error:
        raise DamagedError(
            f"'{path}' is damaged: {reason(error)}; take an undamaged copy, or let "
            "'sundsbo-mpi repair' keep what is whole."
        ) from error


def check_there(path: Path) -> None:
    """Refuse a path that is no file."""
    if not path.is_file():
        raise UsageError(
            f"there is no run file '{path}': expected the .h5 file of a run; give the name that "
            "the run wrote to."
        )


def format_of(file: h5py.File) -> str | None:
    """Return what a file says it is; None where it says nothing, or no text."""
    found = file.attrs.get("format")
    return found if isinstance(found, str) else None


def check_format(file: h5py.File, path: Path) -> None:
    """Refuse an HDF5 file that is no run file, or one of another version."""
    found = format_of(file)
    if found != FORMAT:
        named = "no format that can be read" if found is None else f"the format '{found}'"
        what = (
            "it is the file of a bench, which 'sundsbo-mpi compare' and 'sundsbo-mpi predict' read."
            if found == BENCH_FORMAT
            else "it is no run file, or one of another version of sundsbo-mpi; read it with the "
            "version that wrote it."
        )
        raise UsageError(f"'{path}' has {named}, expected '{FORMAT}': {what}")


def _open(path: Path) -> h5py.File:
    try:
        # The writer keeps its lock for as long as it runs; it must not keep readers away.
        return h5py.File(path, "r", locking=False)
    except OSError as error:
        raise DamagedError(
            f"'{path}' cannot be read as an HDF5 file ({reason(error)}): expected the .h5 file of "
            "a run; give another file, or let 'sundsbo-mpi repair' keep what is whole of it."
        ) from None
