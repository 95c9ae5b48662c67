"""What reading data gives rise to say: its notes are collected, other warnings go their way."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sundsbo_mpi.errors import DataNote

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def noted() -> Iterator[list[str]]:
    """Give a list that holds, once the block has ended, each ``DataNote`` of it once, in order."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataNote)
        yield notes
    for warning in caught:
        if issubclass(warning.category, DataNote):
            notes.append(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    notes[:] = dict.fromkeys(notes)
