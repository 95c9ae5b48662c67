"""Decentralised stochastic bilevel optimisation (SUN-DSBO) with one agent per MPI rank.

As a library: what ``__all__`` names is imported when it is first asked for, so that
``import sundsbo_mpi`` itself loads neither MPI nor torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sundsbo_mpi.lazily import importer, names

if TYPE_CHECKING:
    from sundsbo_mpi.comm.world import start_mpi
    from sundsbo_mpi.library import Solution, build_weights, solve
    from sundsbo_mpi.library.modules import SplitModule
    from sundsbo_mpi.tasks.base import Task
    from sundsbo_mpi.topology import Weights, read_weights

__version__ = "0.1.0"

__all__ = [
    "Solution",
    "SplitModule",
    "Task",
    "Weights",
    "build_weights",
    "read_weights",
    "solve",
    "start_mpi",
]

_HOMES = {
    "Solution": "library",
    "SplitModule": "library.modules",
    "Task": "tasks.base",
    "Weights": "topology",
    "build_weights": "library",
    "read_weights": "topology",
    "solve": "library",
    "start_mpi": "comm.world",
}
"""The module that each name comes from; none of them imports mpi4py.MPI, which would start MPI."""

__getattr__ = importer(__name__, _HOMES)
__dir__ = names(__name__, __all__)
