"""Checkpoints: everything from which a run goes on bit for bit, in files that a kill cannot spoil.

A checkpoint is a folder ``DIR/iteration-000000500`` with one HDF5 file for every agent, written by
the agent, and ``manifest.json``, written last, by rank 0.  The folder has another name, beginning
with a dot, until all of it is on disk.  The last two are kept.
"""

from sundsbo_mpi.checkpoint.folder import Folder
from sundsbo_mpi.checkpoint.manifest import About, Manifest
from sundsbo_mpi.checkpoint.moment import Moment, Spent
from sundsbo_mpi.checkpoint.saving import Saver

__all__ = ["About", "Folder", "Manifest", "Moment", "Saver", "Spent"]
