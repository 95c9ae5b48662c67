"""Names of a package that are imported when they are first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def importer(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package, by which it has names from its own modules.

    Args:
        package: The package's ``__name__``.
        homes: The module, below the package, that each name comes from.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return find


def names(package: str, offered: Sequence[str]) -> Callable[[], list[str]]:
    """Return the ``__dir__`` of a package, with the names that are not imported yet.

    Args:
        package: The package's ``__name__``.
        offered: Its ``__all__``.
    """
    return lambda: sorted({*vars(sys.modules[package]), *offered})
