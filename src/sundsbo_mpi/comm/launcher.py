"""Which launcher started this process, from the environment alone, and which MPI suits it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SINGLE_PROCESS = "no launcher"
OPENMPI_MPIRUN = "Open MPI's mpirun"
HYDRA = "MPICH's mpirun"
PALS = "PALS' mpiexec"
SRUN = "srun"


@dataclass(frozen=True)
class Launcher:
    """What the environment says about this process's place in a parallel job.

    ``size`` is None where the launcher keeps it to itself, ``pmix`` says whether the processes
    meet over PMIx.
    """

    name: str
    rank: int
    size: int | None
    pmix: bool


# A launcher leaves all variables of its row.  The order matters: mpirun inside a Slurm job also
# passes on Slurm's variables (those of its own daemons), and srun or PALS also speak PMI.
_SIGNS = (
    (OPENMPI_MPIRUN, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    (HYDRA, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    (PALS, "PALS_RANKID", "PMI_SIZE"),
    # Not SLURM_NTASKS: the batch script has it too, where nothing was launched yet.
    (SRUN, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("a PMI launcher", "PMI_RANK", "PMI_SIZE"),
    ("a PMIx launcher", "PMIX_RANK"),
)


def find_launcher(environment: Mapping[str, str] = os.environ) -> Launcher:
    """Recognise Open MPI's mpirun, MPICH's Hydra, PALS, srun, or anything that speaks PMI(x)."""
    for name, rank, *others in _SIGNS:
        if all(environment.get(variable, "").isdigit() for variable in (rank, *others)):
            size = int(environment[others[0]]) if others else None
            pmix = name == OPENMPI_MPIRUN or "PMIX_RANK" in environment
            return Launcher(name, int(environment[rank]), size, pmix)
    return Launcher(SINGLE_PROCESS, 0, 1, pmix=False)


def mismatch(vendor: str, library: str, launcher: Launcher) -> str | None:
    """Say why a library (vendor and version string) cannot work under a launcher, if it cannot."""
    pmix = "pmix" in library.lower()
    if launcher.name == OPENMPI_MPIRUN and vendor != "Open MPI" and not pmix:
        belongs = "to Open MPI"
    elif launcher.pmix and vendor == "MPICH" and not pmix:
        belongs = "to libraries that speak PMIx, unlike this one"
    elif launcher.name == HYDRA and vendor == "Open MPI" and launcher.size != 1:
        belongs = "to MPICH"
    else:
        return None
    return (
        f"mpi4py uses {vendor}, but the job was started by {launcher.name}, which belongs "
        f"{belongs}: {_remedy(vendor, launcher)}."
    )


def lonely(vendor: str, launcher: Launcher, size: int) -> str | None:
    """Say that the processes did not find each other, if the launcher started more than one."""
    if size > 1 or launcher.size is None or launcher.size == 1:
        return None
    return (
        f"{launcher.name} started {launcher.size} processes, but in {vendor} each is rank 0 of 1: "
        f"the launcher and the library do not belong together; {_remedy(vendor, launcher)}."
    )


def _remedy(vendor: str, launcher: Launcher) -> str:
    if launcher.name in (OPENMPI_MPIRUN, HYDRA):
        return f"use the mpirun of {vendor} (with a wheel: the one beside this python)"
    if launcher.name == SRUN:
        plugin = "pmix" if vendor == "Open MPI" else "pmi2"
        return f"use the mpirun of {vendor}, or try srun --mpi={plugin}"
    return f"use the mpirun of {vendor}, or load the MPI library that belongs to this launcher"
