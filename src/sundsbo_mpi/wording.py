"""Words that messages and tables share: numbers of things, and how to go on with a run."""

from __future__ import annotations

import shlex


def number_of(count: int, thing: str) -> str:
    """Return how many there are: ``1 rank``, ``2 ranks``."""
    return f"{count} {thing}{'s' * (count != 1)}"


def resuming(folder: str, agents: int) -> str:
    """Return the command that goes on with a run of so many agents from its checkpoints."""
    start = f"mpirun -n {agents} " if agents > 1 else ""
    return f"{start}sundsbo-mpi resume {shlex.quote(folder)}"
