"""Which words start this program, and its ranks, inside a job."""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sundsbo_mpi.batch.job import AGENTS
from sundsbo_mpi.errors import unknown

BY_MPIRUN = "mpirun"
PMIX, PMI2, CRAY = "pmix", "pmi2", "cray_shasta"
PATIENCE_SECONDS = 60
"""How long srun leaves the others after the first rank has ended: a rank that died ends the job,
and those that leave together are not killed on their way out."""


def program() -> list[str]:
    """Return the words that start this program, with the Python that runs it now.

    Without -P, files of the working directory would stand in for modules of the same name.
    """
    beside = Path(sys.executable).with_name("sundsbo-mpi")
    return [str(beside)] if beside.exists() else [sys.executable, "-P", "-m", "sundsbo_mpi"]


def usual_mpi() -> str:
    """Return how srun starts ranks of the MPI wheel of this environment, or else of Open MPI."""
    try:
        version("mpich")
    except PackageNotFoundError:
        return PMIX
    return PMI2


def launcher(mpi: str) -> list[str]:
    """Return the words that start ``AGENTS`` ranks inside a Slurm job.

    Args:
        mpi: A type of ``srun --mpi``, or ``mpirun``.

    Raises:
        UsageError: there is no such type.
    """
    if mpi == BY_MPIRUN:
        return [mpirun(), "-n", AGENTS]
    if mpi not in (PMI2, CRAY) and not mpi.startswith(PMIX):  # pmix_v4 and the like
        raise unknown("--mpi", mpi, (PMIX, PMI2, CRAY, BY_MPIRUN))
    return ["srun", f"--mpi={mpi}", f"--wait={PATIENCE_SECONDS}", "-n", AGENTS]


def by_flux(*needs: str) -> list[str]:
    """Return the words that start ``AGENTS`` ranks inside a Flux job.

    Args:
        needs: Flags of what every rank needs.
    """
    pmix = ["-o", "pmi=pmix"] if usual_mpi() == PMIX else []  # which Open MPI alone asks for
    return ["flux", "run", *pmix, "-n", AGENTS, *needs]


def mpirun() -> str:
    """Return the mpirun beside the running Python, or the one on PATH."""
    beside = Path(sys.executable).with_name(BY_MPIRUN)
    return str(beside) if beside.exists() else shutil.which(BY_MPIRUN) or BY_MPIRUN
