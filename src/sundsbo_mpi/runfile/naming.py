"""Where a run file goes: its default name, the name it has until it is readable, its final name."""

from __future__ import annotations

import itertools
import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import h5py

from sundsbo_mpi.durable import settle
from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.runfile.locking import held

if TYPE_CHECKING:
    from datetime import datetime


class OutputExistsError(UsageError):
    """The output file is there already."""


def default_path(task: str, algorithm: str, now: datetime, directory: Path = Path()) -> Path:
    """Return an unused name such as ``quadratic_sun-dsbo-gt_20261127-231500.h5``.

    A task given as ``file.py:Class`` or ``module:Class`` lends its class name only.  A name in use
    gets ``-2``, ``-3``, ... at its end.
    """
    words = (task.rpartition(":")[2], algorithm, f"{now:%Y%m%d-%H%M%S}")
    stem = "_".join(re.sub(r"[^A-Za-z0-9.-]+", "-", word).strip(".-") for word in words)
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    paths = (directory / f"{name}.h5" for name in names)
    return next(path for path in paths if not os.path.lexists(path))


def check_writable(path: Path, overwrite: bool) -> None:
    """Refuse a path that cannot become, or must not be replaced by, a new run file.

    Raises:
        OutputExistsError: The file exists and ``overwrite`` is off.
        UsageError: The directory is missing, or the file is being written by another run, or it
            exists and is no HDF5 file.
    """
    if os.path.lexists(path):
        _check_not_in_use(path)
        if not overwrite:
            raise exists(path)
    check_folder(path, "--output")


def check_folder(path: Path, flag: str) -> None:
    """Refuse a path in whose directory no file can be made.

    Raises:
        UsageError: The directory is missing or cannot be written.
    """
    if not path.parent.is_dir():
        raise UsageError(
            f"cannot write '{path}': there is no directory '{path.parent}'; "
            f"make it first or choose another {flag}."
        )
    probe = temporary(path)
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise UsageError(
            f"cannot write '{path}': {reason(error)}; choose another {flag}."
        ) from None


def temporary(path: Path) -> Path:
    """Return the hidden name, in the same directory, of a file that is not yet readable."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


def publish(hidden: Path, path: Path, overwrite: bool) -> None:
    """Give the file its final name, without replacing another file unless ``overwrite`` is on.

    Raises:
        OutputExistsError: Another run took the name in the meantime.
        UsageError: Another run is writing the file that would be replaced.
    """
    if overwrite and os.path.lexists(path):
        with held(path):
            replace_with(hidden, path)
    else:
        _link(hidden, path)
        settle(path.parent)


def replace_with(hidden: Path, path: Path) -> None:
    """Give the file its final name, also where another one has it, whose lock we must hold."""
    hidden.replace(path)
    settle(path.parent)


def exists(path: Path) -> OutputExistsError:
    """Say that ``path`` is taken and what to do."""
    return OutputExistsError(
        f"the output '{path}' exists already: pass --overwrite to replace it "
        "or choose another --output."
    )


def _link(hidden: Path, path: Path) -> None:
    try:
        # Unlike a rename, a link fails when another run took the name since it was checked.
        os.link(hidden, path)
    except FileExistsError:
        raise exists(path) from None
    except OSError:
        # File systems without hard links.
        hidden.rename(path)
    else:
        hidden.unlink()


def _check_not_in_use(path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"the output '{path}' is a directory: choose a file name with --output.")
    try:
        with held(path):
            if not path.is_file():
                raise OSError
            h5py.File(path, "r", locking=False).close()
    except OSError:
        raise UsageError(
            f"the output '{path}' exists and is not a readable HDF5 file: "
            "remove it yourself or choose another --output."
        ) from None
