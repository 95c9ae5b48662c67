"""Which versions of what a run uses."""

from __future__ import annotations

import platform
import re
from importlib.metadata import version

PACKAGES = ("sundsbo-mpi", "torch", "numpy", "scipy", "mpi4py", "h5py")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide what a run computes."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def library(description: str) -> str:
    """Return the name and the number of an MPI library's description of itself."""
    # Libraries add their build's whole history, after a comma or on further lines.
    return " ".join(re.split(r"[,\n]", description)[0].split())
