"""How numbers of things are said, and how to go on with a run."""

from __future__ import annotations

import shlex


def number_of(count: int, thing: str) -> str:
    """Return how many there are: ``1 rank``, ``2 ranks``."""
    return f"{count} {thing}{'s' * (count != 1)}"


def resuming(folder: str, agents: int, *, enduring: bool) -> str:
    """Return the command that goes on with a run of so many agents from its checkpoints.

    Args:
        folder: Where these are.
        agents: How many are left.
        enduring: Whether they go on without agents that are lost, for which mpirun has a flag.
    """
    start = f"mpirun -n {agents} {'--with-ft ulfm ' * enduring}" if agents > 1 else ""
    return f"{start}sundsbo-mpi resume {shlex.quote(folder)}"
