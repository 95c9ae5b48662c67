"""Which versions of what a run uses."""

from __future__ import annotations

import platform
from importlib.metadata import version

PACKAGES = ("sundsbo-mpi", "torch", "numpy", "scipy", "mpi4py", "h5py")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide what a run computes."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
