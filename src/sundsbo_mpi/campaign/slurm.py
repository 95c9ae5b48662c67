"""Runs as a Slurm job array, and a job after it that looks at what came out."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.campaign.running import command
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.campaign.job import Job


def array_script(todo: Sequence[Job], launcher: str, logs: Path, name: str) -> str:
    """Return a batch script with one array task per run.

    Account, partition and time limit are left to sbatch's own environment variables
    (SBATCH_ACCOUNT, SBATCH_PARTITION, SBATCH_TIMELIMIT).

    Args:
        todo: The runs.
        launcher: How ranks are started inside an allocation, such as ``srun -n {n}``.
        logs: The directory of the tasks' output.
        name: Of the job.

    Raises:
        UsageError: Slurm could not read the name of that directory.
    """
    if odd := next((c for c in str(logs) if c in '"%\\' or not c.isprintable()), None):
        raise UsageError(
            f"Slurm cannot write to a directory with {odd!r} in its name: choose another one with "
            "--out."
        )
    cases = "\n".join(
        f"{number}) exec {shlex.join(command(job, launcher))} ;;" for number, job in enumerate(todo)
    )
    return f"""#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --array=0-{len(todo) - 1}
#SBATCH --ntasks={max(job.agents for job in todo)}
#SBATCH --output="{logs}/%A_%a.log"

case "$SLURM_ARRAY_TASK_ID" in
{cases}
esac
"""


def submit(script: Path, again: Sequence[str]) -> tuple[str, str]:
    """Submit the array, and a job that goes on once it has ended; return both job numbers.

    Args:
        script: The array's script.
        again: The command of the job after it.

    Raises:
        UsageError: there is no sbatch, or it refuses one of the two.
    """
    array = _sbatch(str(script))
    try:
        return array, _collecting(script.parent, array, again)
    except UsageError as error:
        raise UsageError(
            f"job {array} has the runs, but none looks at them after it: {error} Once it has "
            "ended, give the same command with --collect in place of --submit."
        ) from None


def _collecting(logs: Path, array: str, again: Sequence[str]) -> str:
    after = f"--dependency=afterany:{array}"
    output = f"--output={logs}/%j.log"
    wrap = f"--wrap={shlex.join(again)}"
    return _sbatch("--ntasks=1", "--job-name=sundsbo-collect", after, output, wrap)


def _sbatch(*arguments: str) -> str:
    try:
        result = subprocess.run(
            ["sbatch", "--parsable", *arguments], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise UsageError(
            f"there is no sbatch on PATH ({error.strerror}): submit on a machine with Slurm, or "
            "look at the script with --submit --dry-run."
        ) from None
    if result.returncode:
        said = " ".join(result.stderr.split())
        raise UsageError(f"sbatch refused the job: {said}; set SBATCH_* variables as it needs.")
    number = result.stdout.strip().partition(";")[0]
    if not number.isdigit():
        raise UsageError(f"sbatch said {number!r}, not a job's number: see what runs with squeue.")
    return number
