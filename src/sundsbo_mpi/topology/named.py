"""All topologies that can be made, single matrices and sequences of them, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sundsbo_mpi.errors import unknown
from sundsbo_mpi.topology.builders import BUILDERS
from sundsbo_mpi.topology.sequences import SEQUENCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from sundsbo_mpi.topology.mixing import Mixing


def topologies() -> dict[str, Callable[..., Mixing]]:
    """Return what makes each topology, by name, the single matrices first."""
    return {**BUILDERS, **SEQUENCES}


def builder_of(name: str, called: str = "topology") -> Callable[..., Mixing]:
    """Return what makes a topology, called with the number of agents and its options.

    Args:
        name: One of ``topologies``.
        called: What the name is, where it is refused.

    Raises:
        UsageError: there is none of that name.
    """
    known = topologies()
    if name not in known:
        raise unknown(called, name, known)
    return known[name]
