"""The two ways in which a run ends badly on purpose, notes, and how causes and values are told."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 100
"""Characters of a value in a message."""


class UsageError(Exception):
    """What the user asked for cannot be done; printed once as one sentence, exit status 2.

    The sentence says what was got, what was expected and what to do.
    """


class AgreedError(UsageError):
    """A ``UsageError`` that every rank raises at the same point, so that all can leave together."""


class DivergedError(Exception):
    """The iterates of some agent are no longer finite; exit status 3, with all rows kept."""


class DataNote(UserWarning):
    """Data are used although something about them is worth knowing; the warning is one sentence."""


def brief(value: object) -> str:
    """Write a value as Python would, cut short where that would be long."""
    try:
        text = repr(value)
    except ValueError:  # of an integer with so many digits that Python does not write them
        return "an integer of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]}... ({len(text)} characters)"


def printable(text: str) -> str:
    """Put the text on one line; what would break it, or steer a terminal, as Python writes it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def reason(error: Exception) -> str:
    """Return what an exception says, or the system by it, on one line without a full stop."""
    if isinstance(error, OSError) and error.errno:  # h5py's own words repeat path and number
        return os.strerror(error.errno)
    said = str(error)
    if isinstance(error, KeyError) and error.args:  # h5py's have a sentence, others the key alone
        key = error.args[0]
        said = key if " " in str(key) else f"lacks {key!r}"
    return " ".join(str(said).split()).rstrip(".") or type(error).__name__


def unknown(kind: str, got: str, known: Iterable[str]) -> UsageError:
    """Name the nearest of the ``known`` names beside the unknown one that was ``got``."""
    names = sorted(known)
    near = difflib.get_close_matches(got, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    told = f"known are {', '.join(names)}" if names else "there are none"
    return UsageError(f"unknown {kind} '{printable(got)[:LONGEST]}': {hint}{told}.")
