"""What a checkpoint says of itself: its run, its agents' files, and what its bits depend on."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.versions import versions

FORMAT = "sundsbo-mpi-checkpoint/1"
NAME = "manifest.json"
TABLES = ("run", "topology", "task", "algorithm", "output")


def surroundings() -> dict[str, str]:
    """Return what the bits of a result depend on beside the run and its threads."""
    return {
        **{name: versions()[name] for name in ("sundsbo-mpi", "torch")},
        "instruction set": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
    }


@dataclass(frozen=True)
class About:
    """What is said of a run, whichever the iteration.

    ``agents`` is the number of agents in the beginning, ``numbers`` are those of the agents that
    are left, all if none was lost; ``config`` has the run's tables, ``topology_sha256`` is that of
    the matrices mixed with, ``task_sha256`` that of the file that defines the task, and
    ``surroundings`` is what the bits of a result depend on beside the run itself.
    """

    agents: int
    numbers: list[int]
    config: dict[str, dict[str, Any]]
    topology_sha256: str
    task_sha256: str
    surroundings: dict[str, str] = field(default_factory=surroundings)

    @property
    def whole(self) -> bool:
        """Whether no agent has been lost."""
        return len(self.numbers) == self.agents


@dataclass(frozen=True)
class Manifest:
    """One complete checkpoint.

    ``run_file`` is the whole path of the run file, "" where there was none yet; in the order of
    the numbers of the agents that are left come their ``threads`` and the ``digests``, the SHA-256
    of their files.
    """

    iteration: int
    about: About
    run_file: str
    threads: list[int]
    digests: list[str]

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
        manifest = Manifest(**content | {"about": About(**content["about"])})
        _check(manifest)
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"the checkpoint '{path.parent}' cannot be used: its {path.name} {_said(error)}; take "
            "another folder, or the version that wrote it."
        ) from error
    return manifest


def _check(manifest: Manifest) -> None:
    about, left = manifest.about, manifest.about.numbers
    lists: tuple[list[Any], ...] = (left, manifest.threads, manifest.digests)
    kinds = zip(lists, (int, int, str), strict=True)
    if not all(isinstance(v, kind) for values, kind in kinds for v in values):
        raise TypeError("has something else than numbers, threads and digests of agents")
    ascending = left == sorted(set(left)) and all(0 <= number < about.agents for number in left)
    if not (left and ascending and len({len(values) for values in lists}) == 1):
        raise ValueError(f"does not tell of the {len(left)} of {about.agents} agents that are left")
    tables = [about.config[name] for name in TABLES]
    named = all(isinstance(about.config[name]["name"], str) for name in ("task", "algorithm"))
    texts = (manifest.run_file, about.topology_sha256, about.task_sha256)
    whole = all(isinstance(table, dict) for table in (*tables, about.surroundings))
    counted = isinstance(manifest.iteration, int) and manifest.iteration >= 0
    if not (named and whole and counted and all(isinstance(text, str) for text in texts)):
        raise ValueError("names no task, algorithm or iteration")


def _said(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror})"
    said = f"lacks {error}" if isinstance(error, KeyError) else str(error)
    return " ".join(said.split())
