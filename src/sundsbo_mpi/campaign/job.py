"""One run of a campaign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run: how it is started, and how its file is recognised."""

    title: str
    """What it is called while it runs."""
    agents: int
    settings: tuple[str, ...]
    """Arguments of ``sundsbo-mpi run`` but for those that name its files."""
    path: Path
    """Of its run file."""
    checkpoint: Path
    """The folder of its checkpoints, from which it goes on where it was interrupted."""
    wanted: Mapping[str, Any]
    """The configuration in the form of ``identity``; empty where it was refused."""
    refusal: str = ""
    """Why its configuration was refused, if so."""

    @property
    def log(self) -> Path:
        """Where its words go while it runs, and stay if it does not finish."""
        return self.path.with_suffix(".log")

    def before(self) -> list[list[str]]:
        """Return the commands, after the program's name, for what it needs and is not there."""
        return []

    def prepare(self) -> None:
        """Make what it needs and is not there.

        Raises:
            OSError, UsageError: it cannot be made.
        """
        for place in (self.path, self.checkpoint):
            place.parent.mkdir(parents=True, exist_ok=True)
