"""Runs as a Slurm job array, and a job after it that looks at what came out."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.batch import SCHEDULERS, Batch, Resources, Run, plain, program, script
from sundsbo_mpi.campaign.running import words_of
from sundsbo_mpi.errors import UsageError, reason

if TYPE_CHECKING:
    from sundsbo_mpi.campaign.job import Job

RECORD = "submitted"
"""The file, beside the scripts, with the numbers of the jobs that were submitted last."""


def array_script(todo: Sequence[Job], launcher: str, name: str, path: Path) -> str:
    """Return a batch script with one array task per run, each of which comes again until done.

    Account, partition and time limit are left to sbatch's own environment variables
    (SBATCH_ACCOUNT, SBATCH_PARTITION, SBATCH_TIMELIMIT).

    Args:
        todo: The runs.
        launcher: How ranks are started inside an allocation, such as ``srun -n {n}``.
        name: Of the job.
        path: Where the script will be, with the tasks' output beside it.

    Raises:
        UsageError: Slurm could not read the name of that directory.
    """
    folder = plain("the directory of --out", str(path.parent))
    runs = [
        Run(job.agents, job.settings, str(job.path), str(job.checkpoint), log=str(job.log))
        for job in todo
    ]
    log = f"{folder}/{'%A_%a' if len(runs) > 1 else '%j'}.log"
    batch = Batch(name, runs, words_of(launcher), program(), Resources(), log=log, anew=True)
    return script(batch, SCHEDULERS["slurm"], path)


def submit(path: Path, text: str, again: Sequence[str]) -> tuple[str, str]:
    """Submit the array, and a job that goes on once it has ended; return both job numbers.

    Args:
        path: Of the array's script.
        text: The script.
        again: The command of the job after it.

    Raises:
        UsageError: there is no sbatch, or it refuses one of the two.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    array = _sbatch(str(path))
    record = path.with_name(RECORD)
    record.write_text(f"{array}\n", encoding="utf-8")
    try:
        following = _following(path.parent, array, again)
    except UsageError as error:
        raise UsageError(
            f"job {array} has the runs, but none looks at them after it: {error} Once it has "
            "ended, give the same command again."
        ) from None
    record.write_text(f"{array}\n{following}\n", encoding="utf-8")
    return array, following


def require_none_queued(folder: Path) -> None:
    """Refuse to start runs while jobs with such runs are queued or at work.

    Raises:
        UsageError: so they are.
    """
    record = folder / RECORD
    if not record.exists():
        return
    queued = _queued() - {os.environ.get("SLURM_JOB_ID")}  # which goes on after an array
    number = next((n for n in record.read_text(encoding="utf-8").split() if n in queued), None)
    if number is not None:
        raise UsageError(
            f"job {number} with runs of this directory is queued or at work in Slurm: wait for it, "
            f"or end it with 'scancel {number}'."
        )


def _following(logs: Path, array: str, again: Sequence[str]) -> str:
    after = f"--dependency=afterany:{array}"
    output = f"--output={logs}/%j.log"
    wrap = f"--wrap={shlex.join(again)}"
    return _sbatch("--ntasks=1", "--job-name=sundsbo-collect", after, output, wrap)


def _queued() -> set[str | None]:
    """Return the numbers of this user's jobs, those of arrays once; none where Slurm is not.

    Raises:
        UsageError: it does not say.
    """
    words = ["squeue", f"--user={os.getuid()}", "--noheader", "--format=%F"]
    try:
        result = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return set()
    if result.returncode:
        said = " ".join(result.stderr.split())
        raise UsageError(
            f"squeue does not say whether the runs that were submitted are queued: {said}; try "
            "again once Slurm answers."
        )
    return set(result.stdout.split())


def _sbatch(*arguments: str) -> str:
    try:
        result = subprocess.run(
            ["sbatch", "--parsable", *arguments], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise UsageError(
            f"there is no sbatch on PATH ({reason(error)}): submit on a machine with Slurm, or "
            "look at the script with --submit --dry-run."
        ) from None
    if result.returncode:
        said = " ".join(result.stderr.split())
        raise UsageError(f"sbatch refused the job: {said}; set SBATCH_* variables as it needs.")
    number = result.stdout.strip().partition(";")[0]
    if not number.isdigit():
        raise UsageError(f"sbatch said {number!r}, not a job's number: see what runs with squeue.")
    return number
