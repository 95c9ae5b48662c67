"""Names of runs: equal names mean equal iterates, so that a finished run may be used again."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sundsbo_mpi.config.identity import identity

if TYPE_CHECKING:
    from sundsbo_mpi.config.resolving import Config
    from sundsbo_mpi.topology import Mixing

DIGITS = 12
"""Of the digest in a name."""


class Place(NamedTuple):
    """Where a campaign keeps a run file, and the folder of that run's checkpoints."""

    path: Path
    checkpoint: Path


def run_name(config: Config, weights: Mixing) -> str:
    """Name a run after all that its iterates depend on.

    That is its configuration in the form of ``identity``, the weights and, where a user's file
    defines the task, that file; a module that is imported by its name is not looked into.
    """
    task = config.task["name"]
    # Files of the same name may have other contents next time.
    parts = [identity(config.as_dict()), weights.agents, weights.sha256, _source(task)]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:DIGITS]
    return f"{task.rpartition(':')[2]}_{config.algorithm['name']}_seed{config.run.seed}_{digest}"


def place(directory: Path, name: str) -> Place:
    """Return where the files of a run are, below the directory of its campaign."""
    return Place(directory / "runs" / f"{name}.h5", directory / "checkpoints" / name)


@cache
def _source(task: str) -> str:
    """Return the digest of a user's task file, "" for other tasks."""
    file = task.rpartition(":")[0]
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file.endswith(".py") else ""
