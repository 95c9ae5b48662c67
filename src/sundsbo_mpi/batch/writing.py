"""From a batch to the text of its script, and to a file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.batch.job import AGENTS
from sundsbo_mpi.errors import UsageError, reason

if TYPE_CHECKING:
    from sundsbo_mpi.batch.job import Batch

PACKAGE = "sundsbo_mpi.batch"


@dataclass(frozen=True)
class Scheduler:
    """What runs batch scripts.

    Args:
        template: The file of its script.
        suffix: Of scripts for it.
        submit: The words that submit one.
        tells: Whether it tells a job that its time will soon be over; the run itself looks at the
            clock where it does not.
        rounds: The variable with how often a job has come again.
        folder: The variable that says where a job was submitted, where it does not start there.
    """

    template: str
    suffix: str
    submit: str
    tells: bool
    rounds: str
    folder: str = ""


SCHEDULERS = {
    "slurm": Scheduler("slurm.sh", ".sbatch", "sbatch", tells=True, rounds="SLURM_RESTART_COUNT"),
    "pbs": Scheduler("pbs.sh", ".pbs", "qsub", tells=False, rounds="ROUND", folder="PBS_O_WORKDIR"),
    "flux": Scheduler("flux.sh", ".flux", "flux batch", tells=False, rounds="ROUND"),
}


def script(batch: Batch, scheduler: Scheduler, path: Path) -> str:
    """Return the text of a batch script.

    Args:
        batch: What it starts.
        scheduler: What it is written for.
        path: Where it will be, which its line on submitting names.

    Raises:
        UsageError: the scheduler needs to be told the time, or runs no arrays.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    if not scheduler.tells and batch.resources.seconds is None:
        raise UsageError("no time limit: say with --time how long the job may run.")
    if scheduler.template != "slurm.sh" and len(batch.runs) > 1:
        raise UsageError("several runs in one script are for Slurm alone: write one for each.")
    environment = Environment(
        loader=PackageLoader(PACKAGE),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "word": lambda value: shlex.quote(str(value)),
        "words": shlex.join,
        "starting": _starting,
    }
    template = environment.get_template(scheduler.template)
    return template.render(batch=batch, need=batch.resources, scheduler=scheduler, path=path)


def _starting(words: Sequence[str]) -> str:
    """Write the words of a launcher for a shell that knows the number of ranks as ``agents``."""

    def written(word: str) -> str:
        return '"$agents"'.join(shlex.quote(part) if part else "" for part in word.split(AGENTS))

    return " ".join(written(word) if word else "''" for word in words)


def write(path: Path, text: str, *, overwrite: bool) -> None:
    """Write a script that may be executed.

    Raises:
        UsageError: it exists and ``overwrite`` is off, or it cannot be written.
    """
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o755)
    except FileExistsError:
        raise UsageError(
            f"the script '{path}' exists already: pass --overwrite to replace it, or choose "
            "another --name or --output."
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot write '{path}': {reason(error)}; choose another --output."
        ) from None
