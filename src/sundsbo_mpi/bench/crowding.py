"""Whether the ranks of a bench had a core each."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from sundsbo_mpi.bench import core_ranges
from sundsbo_mpi.comm.crowd import crowd_of

if TYPE_CHECKING:
    from sundsbo_mpi.bench.record import Bench
    from sundsbo_mpi.comm.crowd import Crowd


def crowd_in(bench: Bench) -> Crowd | None:
    """Return the crowd of the first node with more ranks than cores, None where there is none."""
    allowed: dict[int, list[set[int]]] = defaultdict(list)
    for node, cores in zip(bench.ranks["node"].tolist(), bench.ranks["binding"], strict=True):
        if cores:  # empty where they are not known
            allowed[node].append(core_ranges.read(str(cores)))
    return next(filter(None, map(crowd_of, allowed.values())), None)
