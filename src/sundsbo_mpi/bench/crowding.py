"""Whether the ranks of a bench had a core each."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sundsbo_mpi.comm.placement import crowd_of

if TYPE_CHECKING:
    from sundsbo_mpi.bench.record import Bench
    from sundsbo_mpi.comm.placement import Crowd


def crowd_in(bench: Bench) -> Crowd | None:
    """Return that of the first node with more ranks than cores, or None where there is none."""
    allowed: dict[int, list[set[int]]] = defaultdict(list)
    for node, cores in zip(bench.ranks["node"].tolist(), bench.ranks["binding"], strict=True):
        allowed[node].append(_cores(str(cores)))
    return next(filter(None, map(crowd_of, allowed.values())), None)


def _cores(ranges: str) -> set[int]:
    """Read core numbers such as ``0-3,8``."""
    ends_of = [part.split("-") for part in ranges.split(",") if part]
    return {core for ends in ends_of for core in range(int(ends[0]), int(ends[-1]) + 1)}
