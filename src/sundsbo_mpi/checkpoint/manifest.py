"""What a checkpoint says of itself: its run, its agents' files, and what its bits depend on."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import torch

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.versions import versions

FORMAT = "sundsbo-mpi-checkpoint/1"
NAME = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """One complete checkpoint.

    ``config`` has the run's tables, ``topology_sha256`` is that of the matrices mixed with,
    ``run_file`` the whole path of the run file, ``surroundings`` what the bits of a result depend
    on beside the run itself.  ``agents`` is the number of agents in the beginning, ``numbers`` are
    those of the agents that are left, all if none was lost; in their order come ``threads`` and
    ``digests``, the SHA-256 of the files.
    """

    iteration: int
    agents: int
    numbers: list[int]
    config: dict[str, dict[str, Any]]
    topology_sha256: str
    task_sha256: str
    run_file: str
    surroundings: dict[str, str]
    threads: list[int]
    digests: list[str]

    @classmethod
    def of(
        cls, config: dict[str, dict[str, Any]], agents: int, topology_sha256: str, task_sha256: str
    ) -> Self:
        """Return what can be said of a run before it has begun."""
        return cls(
            iteration=0,
            agents=agents,
            numbers=list(range(agents)),
            config=config,
            topology_sha256=topology_sha256,
            task_sha256=task_sha256,
            run_file="",
            surroundings=surroundings(),
            threads=[],
            digests=[],
        )

    def write(self, path: Path) -> None:
        """Write it to the disk.

        Raises:
            OSError: it cannot be written.
        """
        with path.open("x", encoding="utf-8") as file:
            json.dump({"format": FORMAT, **asdict(self)}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        UsageError: it is missing, damaged, or one of another version.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = content.pop("format")
        if found != FORMAT:
            raise ValueError(f"has the format '{found}', expected '{FORMAT}'")
        manifest = Manifest(**content)
        _check(manifest)
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"the checkpoint '{path.parent}' cannot be used: its {path.name} {_said(error)}; take "
            "another folder, or the version that wrote it."
        ) from error
    return manifest


def _check(manifest: Manifest) -> None:
    left = len(manifest.numbers)
    ascending = manifest.numbers == sorted(set(manifest.numbers) & set(range(manifest.agents)))
    if not (left and ascending and left == len(manifest.threads) == len(manifest.digests)):
        raise ValueError(f"does not tell of the {left} of {manifest.agents} agents that are left")
    tables = manifest.config
    named = all(isinstance(tables[table]["name"], str) for table in ("task", "algorithm"))
    if not (named and isinstance(manifest.iteration, int) and manifest.iteration >= 0):
        raise ValueError("names no task, algorithm or iteration")


def _said(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror})"
    said = f"lacks {error}" if isinstance(error, KeyError) else str(error)
    return " ".join(said.split())


def surroundings() -> dict[str, str]:
    """Return what the bits of a result depend on beside the run and its threads."""
    return {
        **{name: versions()[name] for name in ("sundsbo-mpi", "torch")},
        "instruction set": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
    }
