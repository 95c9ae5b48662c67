"""A sound run file from what is whole in a damaged one, or in one whose run was killed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.runfile.events import Event
from sundsbo_mpi.runfile.locking import held
from sundsbo_mpi.runfile.naming import check_writable, exists, publish, replace_with
from sundsbo_mpi.runfile.opening import DamagedError
from sundsbo_mpi.runfile.placing import place
from sundsbo_mpi.runfile.reader import RunData, read_run
from sundsbo_mpi.runfile.salvage import salvaged

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_damaged(path: str | Path) -> RunData:
    """Return what is whole in a damaged run file, whose ``damage`` says what is not.

    Raises:
        UsageError: There is no such file, it is no run file, or no evaluation in it is whole.
    """
    path = Path(path)
    with salvaged(path) as found:
        return RunData.of(path, found.contents, found.sentence)


def repair(path: Path, output: Path, overwrite: bool) -> str | None:
    """Write what is whole to a new file, and return a sentence on it.

    Returns None where there is nothing to do: the run has ended, and its file is sound.

    Args:
        path: The run file.
        output: Where to write; the same name replaces the file, by a rename.
        overwrite: Whether a file that is there may be replaced.

    Raises:
        UsageError: The run still writes its file, no evaluation in it is whole, or the output
            cannot be written.
    """
    if _ended(path):
        return None
    in_place = output.exists() and output.samefile(path)
    if not in_place:
        check_writable(output, overwrite)
    elif not overwrite:
        raise exists(output)
    with _quiet(path), salvaged(path) as found:
        event = Event(int(found.contents.series["iteration"][-1]), "repaired", found.sentence)
        contents = replace(found.contents, events=(*found.contents.events, event))
        publishing = replace_with if in_place else partial(publish, overwrite=overwrite)
        place(output, contents, publishing, found.file).close()
        return found.sentence


def _ended(path: Path) -> bool:
    try:
        return read_run(path).status != "running"
    except DamagedError:
        return False


@contextmanager
def _quiet(path: Path) -> Iterator[None]:
    """Keep the run file's lock, which nobody has once its writer is dead."""
    try:
        with held(path):
            yield
    except OSError as error:
        raise UsageError(f"'{path}' cannot be opened: {reason(error)}.") from error
