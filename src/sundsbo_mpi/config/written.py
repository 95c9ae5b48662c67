"""What a user may write for a setting: text, a number, a truth, or lists and tables of these."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date, time
from pathlib import Path
from typing import Any

from sundsbo_mpi.errors import UsageError, brief, reason

LARGEST = 2**20
"""Bytes of a configuration; a data file given for one would take long to be refused."""
DEEPEST = 8
"""Tables or lists within one another, of which a setting needs two."""


def read_text(path: Path) -> str:
    """Return the text of a configuration file.

    Raises:
        UsageError: It is no regular file that may be read, or larger than ``LARGEST``.
        ValueError: It is not UTF-8.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe might never end
            raise UsageError(
                f"cannot read the configuration '{path}': it is a device or a pipe; name a TOML "
                "file."
            )
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read the configuration '{path}': {reason(error)}; name a TOML file."
        ) from None
    if len(content) > LARGEST:
        raise UsageError(
            f"the configuration '{path}' has more than {LARGEST:,} bytes, which no settings take; "
            "name a TOML file."
        )
    return content.decode("utf-8-sig")


def value_of(text: str) -> Any:
    """Return the TOML value that a text is, or the text itself if it is none, or a date."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text.strip()
    # A line break may have let further keys in.
    if list(parsed) != ["value"] or isinstance(parsed["value"], date | time):
        return text.strip()
    return parsed["value"]


def require_plain(value: Any, where: str) -> None:
    """Refuse what no setting is: a date, a text with a zero byte, tables without end.

    Raises:
        UsageError: There is such a thing in the value.
    """
    waiting = [(value, 0)]
    while waiting:
        found, depth = waiting.pop()
        if depth > DEEPEST:
            raise UsageError(
                f"{where} has more than {DEEPEST} tables or lists within one another, expected a "
                "few: flatten it."
            )
        if isinstance(found, date | time):
            raise UsageError(f"{where} has the date {found}, expected text: put it into quotes.")
        if isinstance(found, str) and "\0" in found:
            raise UsageError(f"{where} has {brief(found)}, a text with a zero byte: correct it.")
        if isinstance(found, Mapping):
            waiting += [(inner, depth + 1) for pair in found.items() for inner in pair]
        elif isinstance(found, list):
            waiting += [(inner, depth + 1) for inner in found]
