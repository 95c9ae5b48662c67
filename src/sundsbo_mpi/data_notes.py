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
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DataNote)
            yield notes
    finally:
        for w in caught:
            if not issubclass(w.category, DataNote):
                warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
        notes += dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, DataNote))
