"""More ranks on a node than cores to run them: whether it is so, and what helps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sundsbo_mpi.wording import number_of


class Crowd(NamedTuple):
    """The ranks of a node, and the fewer cores that they may use."""

    ranks: int
    cores: int

    @property
    def fact(self) -> str:
        """In words."""
        return f"{self.ranks} ranks of a node share {number_of(self.cores, 'core')}"


def crowd_of(allowed: Sequence[Collection[int]]) -> Crowd | None:
    """Return the crowd on a node whose ranks may use these cores; None where each can have one."""
    cores = len({core for those in allowed for core in those})
    return Crowd(len(allowed), cores) if len(allowed) > cores else None


def crowd_note(
    allowed: Sequence[Collection[int]], vendor: str, environment: Collection[str]
) -> str:
    """Say what a crowd on a node means for its timings, and which variables are left to set.

    Returns "" where every rank can have a core.

    Args:
        allowed: The cores that every rank of the node may use.
        vendor: Of the MPI library, as mpi4py names it.
        environment: The names of the variables that are set.
    """
    crowd = crowd_of(allowed)
    if crowd is None:
        return ""
    helps = {}  # a rank takes its share of threads by itself, unless it was told otherwise
    if vendor == "Open MPI":  # of MPICH's, a heavy yield was seen to change nothing
        helps["OMPI_MCA_mpi_yield_when_idle"] = "1"
        if any(len(set(cores)) < crowd.cores for cores in allowed):
            helps["PRTE_MCA_hwloc_default_binding_policy"] = "none"
    unset = [f"{name}={value}" for name, value in helps.items() if name not in environment]
    said = f"{crowd.fact}: timings say little"
    if unset:
        said += f", and ranks disturb each other less with {' '.join(unset)} in the environment"
    return said
