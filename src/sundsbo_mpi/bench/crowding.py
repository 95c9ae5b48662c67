"""Whether the ranks of a bench had a core each."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from sundsbo_mpi.bench.record import Bench


def crowded(bench: Bench) -> str:
    """Say how many ranks took turns on the cores of the first node with too few, if there is one.

    Returns:
        What goes on after "it was timed while"; nothing where every rank had a core.
    """
    allowed: dict[int, list[set[int]]] = defaultdict(list)
    for node, cores in zip(bench.ranks["node"].tolist(), bench.ranks["binding"], strict=True):
        allowed[node].append(_cores(str(cores)))
    for of_node in allowed.values():
        cores = len(set().union(*of_node))
        if len(of_node) > cores:
            return f"{len(of_node)} ranks took turns on {number_of(cores, 'core')} of one node"
    return ""


def _cores(ranges: str) -> set[int]:
    """Read core numbers such as ``0-3,8``."""
    ends_of = [part.split("-") for part in ranges.split(",") if part]
    return {core for ends in ends_of for core in range(int(ends[0]), int(ends[-1]) + 1)}
