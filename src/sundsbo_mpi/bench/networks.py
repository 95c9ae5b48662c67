"""Networks that are made where no file of weights is read, for ``predict`` and ``bench``."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING

from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sundsbo_mpi.topology import Mixing, Reading


def made(topology: str, agents: Sequence[int], reading: Reading) -> Iterator[Mixing]:
    """Make a topology for each number of agents, when it is asked for.

    Raises:
        UsageError: there is no such topology, it needs options, or ``reading`` is for a file.
    """
    from sundsbo_mpi.topology import builder_of  # here: bench --help need not load SciPy

    build = builder_of(topology, "topology to make for --agents (a file has its own number)")
    refuse_reading(
        reading, f"--agents makes the topology {topology}", "give a file without --agents"
    )
    needed = [p for p in inspect.signature(build).parameters.values() if p.default is p.empty]
    if len(needed) > 1:  # beside the number of agents
        raise UsageError(
            f"the topology {topology} has options that must be given: write it to a file with "
            f"'sundsbo-mpi topology {topology}', and give the file without --agents."
        )
    return map(build, agents)


def refuse_reading(reading: Reading, because: str, instead: str) -> None:
    """Refuse the flags that say how a topology file is read, where none is read.

    Args:
        reading: What they say.
        because: Why no file is read.
        instead: What to do to have one read.

    Raises:
        UsageError: one of them was given.
    """
    given = [f"--{f.name}" for f in fields(reading) if getattr(reading, f.name) != f.default]
    if given:
        flags, out = " and ".join(given), "it" if len(given) == 1 else "them"
        raise UsageError(
            f"got {flags}, expected only where a topology file is read, but {because}: leave {out} "
            f"out, or {instead}."
        )
