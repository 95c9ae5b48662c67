"""Who started us, from the environments that launchers leave, and which library suits whom."""

import pytest

from sundsbo_mpi.comm.launcher import find_launcher, lonely, mismatch

# What the launchers were seen, or are documented, to leave in the environment of rank 2 of 4.
OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_SIZE": "4",
    "PMIX_RANK": "2",
    "PRTE_LAUNCHED": "1",
}
HYDRA = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "2", "MPI_LOCALNRANKS": "4"}
SLURM = {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"}
PALS = {"PALS_RANKID": "2", "PALS_LOCAL_RANKID": "0", "PMI_RANK": "2", "PMI_SIZE": "4"}
DAEMON = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1"}

OPENMPI_LIBRARY = ("Open MPI", "Open MPI v5.0.11, package: Open MPI")
MPICH_LIBRARY = ("MPICH", "MPICH configure: --with-device=ch4:ucx,ofi --with-pm=hydra:gforker")
MPICH_WITH_PMIX = ("MPICH", "MPICH configure: --with-device=ch4:ofi --with-pmix=/usr")


@pytest.mark.parametrize(
    ("environment", "name", "pmix"),
    [
        (OPENMPI, "Open MPI's mpirun", True),
        (OPENMPI | DAEMON, "Open MPI's mpirun", True),
        (HYDRA, "MPICH's mpirun", False),
        (HYDRA | DAEMON, "MPICH's mpirun", False),
        (PALS, "PALS' mpiexec", False),
        (SLURM, "srun", False),
        (SLURM | {"PMI_RANK": "2", "PMI_SIZE": "4"}, "srun", False),
        (SLURM | {"PMIX_RANK": "2"}, "srun", True),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, "a PMI launcher", False),
    ],
)
def test_rank_2_of_4(environment, name, pmix):
    found = find_launcher(environment)
    assert (found.name, found.rank, found.size, found.pmix) == (name, 2, 4, pmix)


def test_a_pmix_launcher_keeps_the_size_to_itself():
    found = find_launcher({"PMIX_RANK": "2"})
    assert (found.rank, found.size, found.pmix) == (2, None, True)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"},  # the batch script itself
        {"OMPI_COMM_WORLD_SIZE": "4"},
        {"PMI_RANK": "-1", "PMI_SIZE": "4"},
    ],
)
def test_no_launcher(environment):
    found = find_launcher(environment)
    assert (found.name, found.rank, found.size, found.pmix) == ("no launcher", 0, 1, False)


@pytest.mark.parametrize(
    ("library", "environment"),
    [
        (MPICH_LIBRARY, OPENMPI),
        (MPICH_LIBRARY, SLURM | {"PMIX_RANK": "2"}),
        (OPENMPI_LIBRARY, HYDRA),
        (("Intel MPI", "Intel(R) MPI Library 2021.13"), OPENMPI),
    ],
)
def test_strangers_are_told_apart_before_mpi_starts(library, environment):
    launcher = find_launcher(environment)
    complaint = mismatch(*library, launcher)
    assert complaint is not None
    assert launcher.name in complaint
    assert library[0] in complaint


@pytest.mark.parametrize(
    ("library", "environment"),
    [
        (OPENMPI_LIBRARY, {}),
        (MPICH_LIBRARY, {}),
        (OPENMPI_LIBRARY, OPENMPI),
        (MPICH_LIBRARY, HYDRA),
        (MPICH_WITH_PMIX, OPENMPI),
        (MPICH_WITH_PMIX, SLURM | {"PMIX_RANK": "2"}),
        (OPENMPI_LIBRARY, SLURM | {"PMIX_RANK": "2"}),
        (OPENMPI_LIBRARY, HYDRA | {"PMI_RANK": "0", "PMI_SIZE": "1"}),
        (("Intel MPI", "Intel(R) MPI Library 2021.13"), HYDRA),
        (("MPICH", "MPI VERSION : CRAY MPICH version 8.1.29"), PALS),
    ],
)
def test_pairs_that_work_are_let_pass(library, environment):
    assert mismatch(*library, find_launcher(environment)) is None


def test_ranks_that_did_not_find_each_other():
    srun = find_launcher(SLURM)
    assert lonely("Open MPI", srun, size=4) is None
    assert lonely("Open MPI", find_launcher({}), size=1) is None
    assert lonely("Open MPI", find_launcher({"PMIX_RANK": "0"}), size=1) is None
    complaint = lonely("Open MPI", srun, size=1)
    assert "srun started 4 processes" in complaint
    assert "--mpi=pmix" in complaint
    assert "--mpi=pmi2" in lonely("MPICH", srun, size=1)


@pytest.mark.parametrize("environment", [PALS, {"PMI_RANK": "1", "PMI_SIZE": "4"}])
def test_srun_is_advised_under_srun_alone(environment):
    complaint = lonely("Open MPI", find_launcher(environment), size=1)
    assert "srun" not in complaint
    assert "load the MPI library that belongs to this launcher" in complaint
