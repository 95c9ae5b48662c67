"""Whole numbers between commas on the command line: any, and the lengths of x and y."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import click

from sundsbo_mpi.options import require_integer

LONGEST = 2**30
"""Numbers of a variable."""


def with_commas(numbers: Iterable[int]) -> str:
    """Write the numbers as ``Integers`` reads them."""
    return ",".join(map(str, numbers))


PAYLOAD = (50_000, 238_510)
"""The lengths of x and y unless others are given."""
PAYLOAD_TEXT = with_commas(PAYLOAD)


class Integers(click.ParamType[tuple[int, ...]]):
    """Whole numbers between commas.

    Args:
        example: Told where something else is given.
    """

    name = "integers"

    def __init__(self, example: str) -> None:
        self._example = example

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Read them."""
        try:
            return tuple(int(item) for item in str(value).split(","))
        except ValueError:
            told = f"expected whole numbers between commas, such as {self._example}."
            self.fail(f"got '{value}', {told}", param, ctx)


class Lengths(Integers):
    """The lengths of x and y, above 0."""

    name = "lengths"

    def __init__(self) -> None:
        super().__init__(PAYLOAD_TEXT)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Read them.

        Raises:
            UsageError: one is out of range.
        """
        found = super().convert(value, param, ctx)
        if len(found) != 2:
            self.fail(
                f"got '{value}', expected the lengths of x and y, such as {self._example}.",
                param,
                ctx,
            )
        for length in found:
            require_integer("a length of --payload", length, 1, LONGEST)
        return found


payload_option = partial(click.option, "--payload", type=Lengths(), metavar="D_X,D_Y")
