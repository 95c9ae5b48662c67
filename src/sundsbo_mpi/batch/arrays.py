"""The runs of an array: every combination of some values of some settings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from sundsbo_mpi.config.toml_text import value_text
from sundsbo_mpi.config.written import value_of
from sundsbo_mpi.errors import UsageError, printable

MOST = 1000
"""Runs of one array; few clusters take more."""


def combinations(texts: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the ``--set`` texts of every run, the setting that was named last varying fastest.

    Args:
        texts: Settings with their values, as in ``run.seed=[0, 1, 2]``; none make one run.

    Raises:
        UsageError: one is no setting with a list, is there twice, or there are too many runs.
    """
    axes: dict[str, list[str]] = {}
    for text in texts:
        name, values = _axis(text)
        if name in axes:
            raise UsageError(f"--array names {name} twice: put all its values into one list.")
        axes[name] = [f"{name}={value_text(value)}" for value in values]
        if len(set(axes[name])) < len(values):
            raise UsageError(f"--array gives {name} a value twice: leave out one of the two.")
    runs = list(itertools.islice(itertools.product(*axes.values()), MOST + 1))
    if len(runs) > MOST:
        raise UsageError(f"--array makes more than {MOST} runs: split it into several scripts.")
    return runs


def _axis(text: str) -> tuple[str, list[Any]]:
    target, _, listed = text.partition("=")
    values = value_of(listed)
    if not (isinstance(values, list) and values and "." in target):
        raise UsageError(
            f"--array {printable(text)}: expected table.key=[value, ...], as in run.seed=[0, 1, 2]."
        )
    return target.strip(), values
