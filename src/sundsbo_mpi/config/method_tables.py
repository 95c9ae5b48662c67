"""Tables of a configuration for some methods alone.

A preset or configuration file may serve several methods: a table such as
``[algorithm."sparkle-*"]`` holds for the methods whose names match, over what stands in
``[algorithm]`` itself.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.algorithms import METHODS
from sundsbo_mpi.config.settings import parameters
from sundsbo_mpi.errors import UsageError, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sundsbo_mpi.config.settings import Layer


def for_method(name: str, layer: Layer) -> Layer:
    """Lay the tables for methods of this name over the layer's table ``algorithm``.

    Raises:
        UsageError: a pattern matches no method at all, or its table has a key that is an option
            of none that it matches.
    """
    chosen: dict[str, Any] = {}
    matching: dict[str, Any] = {}
    for key, value in layer.get("algorithm", {}).items():
        if isinstance(value, dict) and _matches(key):
            _check_keys(key, value)
            matching |= value if fnmatchcase(name, key) else {}
        elif isinstance(value, dict) and any(sign in key for sign in "*?["):
            raise UsageError(
                f'[algorithm."{key}"] is for no method: correct the pattern '
                "('sundsbo-mpi list' names the methods)."
            )
        elif isinstance(value, dict) and "-" in key:  # which names of methods have, and no option
            raise unknown("method of a table in [algorithm]", key, METHODS)
        else:
            chosen[key] = value
    return {**layer, "algorithm": chosen | matching}


def refuse_method_tables(sets: Layer) -> None:
    """Refuse tables for methods in ``--set``, where they would win over later settings.

    Raises:
        UsageError: there is such a table.
    """
    for key, value in sets.get("algorithm", {}).items():
        if isinstance(value, dict) and _matches(key):
            raise UsageError(
                f"--set algorithm.{key} is a table for methods, which belongs into a configuration "
                "file: set its keys one by one, as in algorithm.step_x=0.1."
            )


def _matches(pattern: str) -> list[str]:
    return [known for known in METHODS if fnmatchcase(known, pattern)]


def _check_keys(pattern: str, table: Mapping[str, Any]) -> None:
    """Refuse keys that no method of the pattern has, also where this run's is another one."""
    options = [parameters("algorithm", METHODS[name].options) for name in _matches(pattern)]
    known = {key for of_one in options for key in of_one}
    if odd := next((key for key in table if key not in known), None):
        raise unknown(f'setting of [algorithm."{pattern}"]', odd, known)
