"""Who talks to whom and with which weight: building, checking, reading and writing W."""

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
