"""Sweeps that are given to a real Slurm: stage after stage, through warnings, to the ranking."""

import os
import re
import subprocess
import tomllib

import pytest
from slurm_cluster import until
from slurm_jobs import BIN, HERE, JOB_SECONDS, OVER

from sundsbo_mpi.runfile import read_run

SWEEP = """
[sweep]
metric = "loss"
goal = "min"
finer = 1

[sweep.over]
algorithm.step_y = [0.01, 0.1]

[topology]
file = "ring.txt"

[algorithm]
name = "sun-dsbo-gt"

[task]
name = "slow.py:Slow"
pause = 0.25

[run]
iterations = 40
eval_every = 10
"""


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_sweep_goes_through_its_stages_by_itself(slurm, jobs, mpi):
    (jobs.folder / "steps.toml").write_text(SWEEP)

    def sweep():
        return subprocess.run(
            [BIN[mpi] / "sundsbo-mpi", "sweep", "steps.toml", "--submit"],
            cwd=jobs.folder,
            env=os.environ | slurm.environment | HERE,
            capture_output=True,
            text=True,
            timeout=60,
        )

    first = sweep()
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("stage 1: submitted 2 runs as job ")
    array, following = re.findall(r"job (\d+)", first.stdout)
    runs = jobs.folder / "steps" / "runs"
    until(lambda: list(runs.glob("*.h5")), "a run file", JOB_SECONDS)
    second = sweep()
    assert second.returncode == 2
    assert f"job {array} with runs of this directory is queued or at work" in second.stderr

    slurm("scancel", "--batch", "--signal=USR1", f"{array}_0")
    until(lambda: jobs.state(following) in OVER, "the job after the array", JOB_SECONDS)
    assert slurm.job(f"{array}_0")["Restarts"] == "1"
    assert jobs.state(following) == "COMPLETED"

    best = jobs.folder / "steps" / "best.toml"
    until(best.exists, "the ranking", JOB_SECONDS)
    until(lambda: not slurm("squeue", "-h"), "the end of all jobs", JOB_SECONDS)
    found = [read_run(path) for path in runs.glob("*.h5")]
    assert len(found) > 2  # of the finer stage, too
    assert {run.status for run in found} == {"finished"}
    assert {run.rows for run in found} == {5}
    assert sum(len(run.events) for run in found) == 1
    assert not list((jobs.folder / "steps" / "checkpoints").iterdir())
    losses = {run.config["algorithm"]["step_y"]: run.task["loss"][-1] for run in found}
    chosen = tomllib.loads(best.read_text())["algorithm"]["step_y"]
    assert chosen == min(losses, key=losses.get)
