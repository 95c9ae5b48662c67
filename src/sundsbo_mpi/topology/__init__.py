"""Who talks to whom and with which weight: building, checking, reading and writing W.

What ``__all__`` names is imported when it is first asked for: a rank that is handed its weights
makes none, and over weights that do not change need not load SciPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sundsbo_mpi.lazily import importer, names

if TYPE_CHECKING:
    from sundsbo_mpi.topology.builders import BUILDERS
    from sundsbo_mpi.topology.cycle import Cycle
    from sundsbo_mpi.topology.files import Loaded, read_weights, write_weights
    from sundsbo_mpi.topology.mixing import Links, Mixing, digits
    from sundsbo_mpi.topology.named import builder_of, topologies
    from sundsbo_mpi.topology.optimised import RULES, reweighted
    from sundsbo_mpi.topology.reading import FORMATS, Reading
    from sundsbo_mpi.topology.redrawn import Redrawn
    from sundsbo_mpi.topology.sequences import SEQUENCES
    from sundsbo_mpi.topology.weights import Weights

__all__ = [
    "BUILDERS",
    "FORMATS",
    "RULES",
    "SEQUENCES",
    "Cycle",
    "Links",
    "Loaded",
    "Mixing",
    "Reading",
    "Redrawn",
    "Weights",
    "builder_of",
    "digits",
    "read_weights",
    "reweighted",
    "topologies",
    "write_weights",
]

_HOMES = {
    "BUILDERS": "builders",
    "FORMATS": "reading",
    "RULES": "optimised",
    "SEQUENCES": "sequences",
    "Cycle": "cycle",
    "Links": "mixing",
    "Loaded": "files",
    "Mixing": "mixing",
    "Reading": "reading",
    "Redrawn": "redrawn",
    "Weights": "weights",
    "builder_of": "named",
    "digits": "mixing",
    "read_weights": "files",
    "reweighted": "optimised",
    "topologies": "named",
    "write_weights": "files",
}

__getattr__ = importer(__name__, _HOMES)
__dir__ = names(__name__, __all__)
