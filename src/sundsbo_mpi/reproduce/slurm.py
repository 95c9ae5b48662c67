"""The missing runs as a Slurm job array, and a job after it that compares."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.reproduce.running import command

if TYPE_CHECKING:
    from sundsbo_mpi.reproduce.plan import Job


def array_script(todo: Sequence[Job], launcher: str, logs: Path) -> str:
    """Return a batch script with one array task per run.

    Account, partition and time limit are left to sbatch's own environment variables
    (SBATCH_ACCOUNT, SBATCH_PARTITION, SBATCH_TIMELIMIT).

    Args:
        todo: The runs.
        launcher: How ranks are started inside an allocation, such as ``srun -n {n}``.
        logs: The directory of the tasks' output.
    """
    cases = "\n".join(
        f"{number}) exec {shlex.join(command(job, launcher))} ;;" for number, job in enumerate(todo)
    )
    return f"""#!/bin/bash
#SBATCH --job-name=sundsbo-reproduce
#SBATCH --array=0-{len(todo) - 1}
#SBATCH --ntasks={max(job.agents for job in todo)}
#SBATCH --output="{logs}/%A_%a.log"

case "$SLURM_ARRAY_TASK_ID" in
{cases}
esac
"""


def submit(script: Path, again: Sequence[str]) -> tuple[str, str]:
    """Submit the array, and a job that collects once it has ended; return both job numbers.

    Args:
        script: The array's script.
        again: The command that compares what is there.

    Raises:
        UsageError: there is no sbatch, or it refuses.
    """
    array = _sbatch(str(script))
    after = f"--dependency=afterany:{array}"
    output = f"--output={script.parent}/%j.log"
    wrap = f"--wrap={shlex.join(again)}"
    return array, _sbatch("--ntasks=1", "--job-name=sundsbo-collect", after, output, wrap)


def _sbatch(*arguments: str) -> str:
    try:
        result = subprocess.run(
            ["sbatch", "--parsable", *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UsageError(
            "there is no sbatch on PATH: submit on a machine with Slurm, or look at the script "
            "with --submit --dry-run."
        ) from None
    if result.returncode:
        said = " ".join(result.stderr.split())
        raise UsageError(f"sbatch refused the job: {said}; set SBATCH_* variables as it needs.")
    return result.stdout.strip().partition(";")[0]
