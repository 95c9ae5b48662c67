"""What a checkpoint says of itself: its run, its agents' files, and what its bits depend on."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from sundsbo_mpi.config.tables import TABLES
from sundsbo_mpi.errors import UsageError, brief, printable, reason
from sundsbo_mpi.versions import versions

FORMAT = "sundsbo-mpi-checkpoint/1"
NAME = "manifest.json"
MOST_THREADS = 4096
"""No agent has more processors; a damaged number would have them started."""


NOT_JSON = (json.JSONDecodeError, UnicodeDecodeError)


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
            raise ValueError(f"has the format {brief(found)}, expected '{FORMAT}'")
        manifest = Manifest(**content | {"about": About(**content["about"])})
        _check(manifest)
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"the checkpoint '{path.parent}' cannot be used: its {path.name} {_said(error)}; take "
            "another folder, or the version that wrote it."
        ) from error
    return manifest


def _check(manifest: Manifest) -> None:
    if not (type(manifest.iteration) is int and manifest.iteration >= 0):
        raise ValueError(f"has {brief(manifest.iteration)} for its iteration")
    _check_agents(manifest)
    _check_config(manifest.about.config)
    about = manifest.about
    pairs = about.surroundings.items() if isinstance(about.surroundings, dict) else [(None, None)]
    texts = (about.topology_sha256, about.task_sha256, *(text for pair in pairs for text in pair))
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("does not tell of what the bits of a result depend on")
    _check_path("a run file", manifest.run_file)


def _check_agents(manifest: Manifest) -> None:
    agents, left = manifest.about.agents, manifest.about.numbers
    lists: tuple[list[Any], ...] = (left, manifest.threads, manifest.digests)
    kinds = zip(lists, (int, int, str), strict=True)
    if not all(type(v) is kind for values, kind in kinds for v in values):  # True is an int
        raise ValueError("has something else than numbers, threads and digests of agents")
    ascending = left == sorted(set(left)) and all(0 <= number < agents for number in left)
    counted = type(agents) is int and len({len(values) for values in lists}) == 1
    if not (left and ascending and counted):
        raise ValueError(
            f"does not tell of the {len(left)} of {brief(agents)} agents that are left"
        )
    if odd := [n for n in manifest.threads if not 1 <= n <= MOST_THREADS]:
        raise ValueError(f"has {brief(odd[0])} threads for an agent, of at most {MOST_THREADS}")


def _check_config(config: dict[str, dict[str, Any]]) -> None:
    tables = {name: config[name] for name in TABLES}
    if odd := [name for name in config if name not in tables]:
        raise ValueError(f"has a table {brief(odd[0])}, which no configuration has")
    for name, values in tables.items():
        if not isinstance(values, dict):
            raise ValueError(f"has {brief(values)} for the table '{name}'")
    for table in ("task", "algorithm"):
        _check_path(f"a setting {table}.name", tables[table]["name"])
    _check_path("a setting topology.file", tables["topology"].get("file", ""))


def _check_path(what: str, found: object) -> None:
    """Refuse what is no text, or none that can be the name of a file."""
    try:
        named = isinstance(found, str) and b"\0" not in os.fsencode(found)
    except UnicodeEncodeError:
        named = False
    if not named:
        raise ValueError(f"has {what} {brief(found)}, expected text that can be a name")


def _said(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cannot be read ({reason(error)})"
    said = f"lacks {error}" if isinstance(error, KeyError) else str(error)
    if not isinstance(error, ValueError | KeyError) or isinstance(error, NOT_JSON):
        said = f"is damaged ({said})"
    return printable(" ".join(said.split()))
