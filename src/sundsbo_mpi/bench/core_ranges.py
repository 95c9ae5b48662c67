"""The cores that a rank may run on, as text such as ``0-3,8``."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

PATTERN = re.compile(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")
"""Of the text; none at all where no cores are known."""


def written(cores: Collection[int]) -> str:
    """Write the numbers of cores, ascending."""
    ordered = sorted(cores)
    breaks = [place for place, (a, b) in enumerate(pairwise(ordered), 1) if b != a + 1]
    spans = [ordered[a:b] for a, b in pairwise([0, *breaks, len(ordered)])]
    return ",".join(f"{s[0]}-{s[-1]}" if len(s) > 1 else f"{s[0]}" for s in spans if s)


def read(text: str) -> set[int]:
    """Read what ``written`` wrote."""
    ends_of = [part.split("-") for part in text.split(",") if part]
    return {core for ends in ends_of for core in range(int(ends[0]), int(ends[-1]) + 1)}
