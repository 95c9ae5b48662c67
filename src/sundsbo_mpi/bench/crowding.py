"""Whether the ranks of a bench had a core each."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from sundsbo_mpi.bench.record import Bench


class Turns(NamedTuple):
    """The ranks of a node, and the fewer cores that they took turns on."""

    ranks: int
    cores: int

    @property
    def fact(self) -> str:
        """In words."""
        return f"{self.ranks} ranks took turns on {number_of(self.cores, 'core')} of one node"


def taking_turns(bench: Bench) -> Turns | None:
    """Return the first node with more ranks than cores for them, or None where there is none."""
    allowed: dict[int, list[set[int]]] = defaultdict(list)
    for node, cores in zip(bench.ranks["node"].tolist(), bench.ranks["binding"], strict=True):
        allowed[node].append(_cores(str(cores)))
    nodes = (Turns(len(those), len(set().union(*those))) for those in allowed.values())
    return next((node for node in nodes if node.ranks > node.cores), None)


def _cores(ranges: str) -> set[int]:
    """Read core numbers such as ``0-3,8``."""
    ends_of = [part.split("-") for part in ranges.split(",") if part]
    return {core for ends in ends_of for core in range(int(ends[0]), int(ends[-1]) + 1)}
