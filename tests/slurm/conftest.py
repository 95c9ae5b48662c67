"""A Slurm for the whole session, jobs in it, and runs to compare theirs with."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from slurm_cluster import running
from slurm_jobs import AGENTS, BIN, HERE, JOB_SECONDS, SETTINGS, Jobs, prepare


@pytest.fixture(scope="session")
def slurm():
    """A running Slurm; only where it was asked for, as it takes a machine's ports and its root."""
    if "WITH_SLURM" not in os.environ:
        pytest.skip("Slurm is started by 'make test-slurm' alone")
    # Slurm does not make way for the long names of pytest's own folders.
    with tempfile.TemporaryDirectory(prefix="slurm") as folder, running(Path(folder)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory):
    """The file of the same run, started by itself, by MPI."""
    files = {}

    def uninterrupted(mpi, seed=0):
        if (mpi, seed) not in files:
            folder = tmp_path_factory.mktemp("by itself")
            prepare(folder)
            ranks = [BIN[mpi] / "mpirun", "-n", str(AGENTS), BIN[mpi] / "sundsbo-mpi"]
            if mpi == "openmpi":
                ranks.insert(1, "--oversubscribe")
            words = [*ranks, *SETTINGS, "--seed", str(seed), "--output", "run.h5"]
            here = os.environ | HERE
            subprocess.run(words, cwd=folder, env=here, check=True, timeout=JOB_SECONDS)
            files[mpi, seed] = folder / "run.h5"
        return files[mpi, seed]

    return uninterrupted


@pytest.fixture
def jobs(slurm, tmp_path):
    return Jobs(slurm, tmp_path)
