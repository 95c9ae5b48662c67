"""What the options of a task or method are for, from its signature and its docstrings."""

from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

from sundsbo_mpi.config.settings import KINDS, parameters

NAMED = {kind.__name__: words for kind, words in KINDS.items()} | {
    "str": "text",  # quotes are for files: a shell takes them away
    "Scheduled": "a number or schedule",
}
"""What is expected where a parameter has this annotation."""
ENTRY = re.compile(r"(\w+)(?: \(.*?\))?: *(.*)")


class Option(NamedTuple):
    """An option as its task or method tells of it."""

    name: str
    expected: str
    """Which values it takes; "" where nobody says."""
    default: Any
    """``inspect.Parameter.empty`` where it must be given."""
    meaning: str
    """Its entry below ``Args:``; "" where there is none."""


def described(table: str, target: type) -> list[Option]:
    """Return the options of a class that are settings of a table, in their order.

    Args:
        table: "task" or "algorithm".
        target: The class of a task, or of a method's options.
    """
    signature, meanings = inspect.signature(target).parameters, _meanings(target)
    return [
        Option(name, _expected(signature[name]), default, meanings.get(name, ""))
        for name, default in parameters(table, target).items()
    ]


def summary(documented: object) -> str:
    """Return the first paragraph of a docstring as one line."""
    return _line((inspect.getdoc(documented) or "").split("\n\n")[0])


def _expected(parameter: inspect.Parameter) -> str:
    annotation, default = parameter.annotation, parameter.default
    if annotation is parameter.empty:
        known = default is not None and default is not parameter.empty
        return NAMED.get(type(default).__name__, "") if known else ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    parts = [part for part in text.split(" | ") if part != "None"]
    return " or ".join(NAMED.get(part, part) for part in parts)


def _meanings(target: type) -> dict[str, str]:
    """Return what stands below ``Args:``; a class may say again what one of its bases says."""
    found: dict[str, str] = {}
    for owner in reversed(target.__mro__):
        name = ""
        for line in _arguments(inspect.cleandoc(owner.__doc__ or "")):
            if not line.startswith(" ") and (entry := ENTRY.match(line)):
                name, found[entry[1]] = entry[1], entry[2]
            elif name:
                found[name] += f" {line.strip()}"
    return {name: _line(meaning) for name, meaning in found.items()}


def _arguments(text: str) -> list[str]:
    """Return the lines of the section ``Args:``, which ends at the next line that is not inset."""
    _, _, below = f"\n{text}".partition("\nArgs:\n")
    section = re.split(r"\n(?=\S)", below)[0]
    return inspect.cleandoc(f"\n{section}").splitlines()


def _line(text: str) -> str:
    return " ".join(text.replace("``", "").split())
