"""What ``import sundsbo_mpi`` offers, and what it costs; solving itself is in tests/mpi."""

import importlib
import subprocess
import sys

import pytest

import sundsbo_mpi
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import BUILDERS


def modules_after(statement):
    """Return what a fresh interpreter has imported after a statement."""
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_next_to_nothing():
    loaded = modules_after("import sundsbo_mpi; sundsbo_mpi.__version__; dir(sundsbo_mpi)")
    assert not loaded & {"torch", "numpy", "mpi4py", "click", "h5py", "scipy"}


def test_importing_the_names_starts_no_mpi():
    names = ", ".join(sundsbo_mpi.__all__)
    loaded = modules_after(f"from sundsbo_mpi import {names}")
    assert "torch" in loaded
    assert "mpi4py.MPI" not in loaded


def test_every_name_is_there_and_documented():
    for name in sundsbo_mpi.__all__:
        assert getattr(sundsbo_mpi, name).__doc__
        assert name in dir(sundsbo_mpi)
    with pytest.raises(AttributeError, match="no attribute 'solved'"):
        importlib.import_module("sundsbo_mpi").solved  # noqa: B018  (looking is what fails)


def test_weights_are_those_of_the_command():
    made = sundsbo_mpi.build_weights("ring", 5, self_weight=0.4, lazy=True)
    assert made.sha256 == BUILDERS["ring"](5, self_weight=0.4, lazy=True).sha256
    assert sundsbo_mpi.build_weights("one-peer", agents=4).agents == 4
    with pytest.raises(UsageError, match="unknown topology 'rinf': did you mean 'ring'"):
        sundsbo_mpi.build_weights("rinf", 5)
