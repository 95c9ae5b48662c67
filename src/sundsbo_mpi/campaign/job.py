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
    arguments: tuple[str, ...]
    """Of ``sundsbo-mpi run``."""
    path: Path
    """Of its run file."""
    wanted: Mapping[str, Any]
    """The configuration in the form of ``identity``; empty where it was refused."""
    refusal: str = ""
    """Why its configuration was refused, if so."""
    checkpoint: Path | None = None
    """The folder of its checkpoints, from which an interrupted run goes on, if it keeps any."""
