"""Settings as TOML, one to a line, each with a word on where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sundsbo_mpi.errors import printable

WIDEST = 40
"""Columns that a setting may take before its comment moves to the right alone."""


def value_text(value: Any) -> str:
    """Write a value on one line, as TOML and ``--set`` read it."""
    import tomli_w

    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {value_text(member)}" for key, member in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return tomli_w.dumps({"v": value}).removeprefix("v = ").removesuffix("\n")


def comment(text: str) -> str:
    """Write a text as a comment, on one line whatever it holds."""
    return f"# {printable(text)}"


def document(
    tables: Mapping[str, Mapping[str, Any]], origins: Mapping[str, Mapping[str, str]] | None = None
) -> str:
    """Write tables of settings as a configuration file that reads back as the same.

    TOML cannot say None: such a setting becomes a comment, and is what it is by default.

    Args:
        tables: Values by table and key.
        origins: Where each of them is from, said beside it.
    """
    return "\n".join(
        _table(name, values, (origins or {}).get(name, {})) for name, values in tables.items()
    )


def _table(name: str, values: Mapping[str, Any], origins: Mapping[str, str]) -> str:
    lines = [f"[{_key(name)}]"]
    said = {key: f"{_key(key)} = {value_text(v)}" for key, v in values.items() if v is not None}
    column = max((len(text) for text in said.values() if len(text) <= WIDEST), default=0)
    for key in values:
        origin = origins.get(key, "")
        if key not in said:
            lines.append(comment(f"{_key(key)} is not set" + (f": {origin}" if origin else "")))
        else:
            lines.append(f"{said[key]:{column}}  {comment(origin)}" if origin else said[key])
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    import tomli_w

    return tomli_w.dumps({name: 0}).removesuffix(" = 0\n")
