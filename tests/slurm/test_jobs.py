"""Batch scripts under a real Slurm: told, stopped, back again, done; cancelled, refused, lost."""

import os
import signal
import subprocess

import h5py
import numpy as np
import pytest
from slurm_cluster import until
from slurm_jobs import AGENTS, BIN, HERE, ITERATIONS, SETTINGS, processes

from sundsbo_mpi.runfile import read_run

WAYS = [("openmpi", "pmix"), ("mpich", "pmi2"), ("openmpi", "mpirun"), ("mpich", "mpirun")]
SLOWLY = 0.25
"""Seconds of every iteration: time to send a signal into the middle."""
GRACE_SECONDS = 20


def assert_same(path, reference):
    """Two finished runs have the same rows and the same last iterates, bit for bit."""
    run, other = read_run(path), read_run(reference)
    assert run.status == other.status == "finished"
    assert run.rows == other.rows == ITERATIONS // 10 + 1
    for name in ("loss", "loss_local"):
        assert np.array_equal(run.task[name], other.task[name]), name
    assert np.array_equal(run.agents["rounds"], other.agents["rounds"])
    with h5py.File(path) as file, h5py.File(reference) as alone:
        for name in ("x", "y", "theta"):
            assert file["final"][name].shape[0] == AGENTS
            assert np.array_equal(file["final"][name], alone["final"][name]), name


@pytest.mark.parametrize(("mpi", "how"), WAYS)
def test_a_job_that_is_warned_comes_again_and_ends_as_if_nothing_had_happened(
    jobs, uninterrupted, mpi, how
):
    job = jobs.submit(mpi, how, pause=SLOWLY)
    jobs.begun(job)
    jobs.slurm("scancel", "--batch", "--signal=USR1", job)
    assert jobs.ended(job) == ("COMPLETED", 0, 1), jobs.log(job)
    assert "SIGUSR1 was received" in jobs.log(job)
    assert [event.kind for event in read_run(jobs.folder / "run.h5").events] == ["resumed"]
    assert_same(jobs.folder / "run.h5", uninterrupted(mpi))


def test_a_time_limit_is_survived(jobs, uninterrupted):
    # Slurm looks at the clock every half minute: it warns 60 to 90 seconds after the start.
    job = jobs.submit("openmpi", "pmix", "--time", "2", "--notice", "30", pause=1.5)
    state, status, restarts = jobs.ended(job)
    assert (state, status) == ("COMPLETED", 0), jobs.log(job)
    assert restarts >= 1
    assert_same(jobs.folder / "run.h5", uninterrupted("openmpi"))


def test_an_array_has_a_run_for_every_combination(jobs, uninterrupted):
    names = '["sun-dsbo-ed", "sun-dsbo-gt"]'
    array = ("--array", "run.seed=[0, 1]", "--array", f"algorithm.name={names}")
    job = jobs.submit("mpich", "pmi2", *array, submitted=("--array=0-3%2",))
    found = {}
    for number in range(4):
        assert jobs.ended(f"{job}_{number}") == ("COMPLETED", 0, 0)
        config = read_run(jobs.folder / f"run-{number}.h5").config
        found[number] = (config["run"]["seed"], config["algorithm"]["name"])
    assert found == {
        0: (0, "sun-dsbo-ed"),
        1: (0, "sun-dsbo-gt"),
        2: (1, "sun-dsbo-ed"),
        3: (1, "sun-dsbo-gt"),
    }
    assert_same(jobs.folder / "run-2.h5", uninterrupted("mpich", seed=1))


def test_a_task_of_an_array_comes_again_by_itself(jobs, uninterrupted):
    job = jobs.submit("mpich", "pmi2", "--array", "run.seed=[1, 0]", pause=SLOWLY)
    jobs.begun(f"{job}_0", "run-0")
    jobs.slurm("scancel", "--batch", "--signal=USR1", f"{job}_0")
    assert jobs.ended(f"{job}_0") == ("COMPLETED", 0, 1)
    assert jobs.ended(f"{job}_1") == ("COMPLETED", 0, 0)
    assert_same(jobs.folder / "run-0.h5", uninterrupted("mpich", seed=1))
    assert_same(jobs.folder / "run-1.h5", uninterrupted("mpich"))


@pytest.mark.parametrize(("mpi", "how"), WAYS)
def test_a_cancelled_job_does_not_come_again(jobs, mpi, how):
    job = jobs.submit(mpi, how, pause=SLOWLY)
    jobs.begun(job)
    jobs.slurm("scancel", job)
    state, _, restarts = jobs.ended(job)
    assert (state, restarts) == ("CANCELLED", 0)
    until(lambda: not processes(jobs.folder), "the end of the ranks", GRACE_SECONDS)


def test_a_job_that_is_refused_does_not_come_again(jobs):
    job = jobs.submit("openmpi", "pmix", "--setup", "touch run.h5")
    assert jobs.ended(job) == ("FAILED", 2, 0)
    assert jobs.log(job).count("sundsbo-mpi: ") == 1
    assert "run.h5' exists" in jobs.log(job)


def test_ranks_that_do_not_find_each_other_are_refused(jobs):
    job = jobs.submit("openmpi", "pmi2")
    assert jobs.ended(job) == ("FAILED", 2, 0)
    assert "srun started 3 processes, but in Open MPI each is rank 0 of 1" in jobs.log(job)
    assert "try srun --mpi=pmix" in jobs.log(job)


def test_a_job_comes_again_no_more_often_than_it_may(jobs):
    job = jobs.submit("mpich", "pmi2", "--restarts", "0", pause=SLOWLY)
    jobs.begun(job)
    jobs.slurm("scancel", "--batch", "--signal=USR1", job)
    assert jobs.ended(job) == ("FAILED", 85, 0)
    assert "not done after 0 restarts: submit the script again" in jobs.log(job)


@pytest.mark.parametrize(("mpi", "how"), WAYS[:2])
def test_a_job_that_loses_a_rank_ends(jobs, mpi, how):
    job = jobs.submit(mpi, how, pause=SLOWLY)
    jobs.begun(job)
    os.kill(processes(jobs.folder)[-1], signal.SIGKILL)
    state, _, restarts = jobs.ended(job)
    assert (state, restarts) == ("FAILED", 0), jobs.log(job)
    assert read_run(jobs.folder / "run.h5").rows >= 1


@pytest.mark.parametrize(("mpi", "how"), WAYS[:2])
def test_what_killed_ranks_leave_is_not_in_the_way_of_the_job_that_comes_again(
    jobs, uninterrupted, mpi, how
):
    """It lies in shared memory, and MPICH finds it there by the number of the job and its step."""
    job = jobs.submit(mpi, how, pause=SLOWLY)
    jobs.begun(job)
    for rank in processes(jobs.folder):
        os.kill(rank, signal.SIGKILL)
    assert jobs.ended(job)[0] == "FAILED"
    jobs.slurm("scontrol", "requeue", job)
    until(lambda: jobs.slurm.job(job)["Restarts"] == "1", "the job's return")
    assert jobs.ended(job) == ("COMPLETED", 0, 1)
    assert_same(jobs.folder / "run.h5", uninterrupted(mpi))


@pytest.mark.parametrize(("mpi", "how"), WAYS[:2])
def test_ranks_of_srun_that_slurm_itself_warns_exit_with_85(slurm, jobs, mpi, how):
    run = ["srun", f"--mpi={how}", "-n", str(AGENTS), BIN[mpi] / "sundsbo-mpi", *SETTINGS]
    run += ["--set", f"task.pause={SLOWLY}", "--checkpoint", "saved", "--output", "run.h5"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    environment = os.environ | slurm.environment | HERE
    with subprocess.Popen(run, cwd=jobs.folder, env=environment, **pipes) as process:
        until(lambda: slurm("squeue", "-h"), "srun's own job")
        number = slurm("squeue", "-h", "-o", "%i")
        jobs.begun(number)
        slurm("scancel", "--signal=USR1", number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 85
    assert "SIGUSR1 was received" in said
