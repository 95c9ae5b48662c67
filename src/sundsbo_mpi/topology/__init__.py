"""Who talks to whom and with which weight: building, checking, reading, writing and drawing W."""

from sundsbo_mpi.topology.builders import BUILDERS
from sundsbo_mpi.topology.files import Loaded, read_weights, write_weights
from sundsbo_mpi.topology.reading import FORMATS, Reading
from sundsbo_mpi.topology.weights import Weights

__all__ = ["BUILDERS", "FORMATS", "Loaded", "Reading", "Weights", "read_weights", "write_weights"]
