"""Whether and with which settings a request goes on with a run from its checkpoints; on rank 0."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.checkpoint.resuming import (
    Candidate,
    Resumption,
    changed_surroundings,
    require_agents,
    require_same_run,
    require_same_value,
)
from sundsbo_mpi.config.identity import same_task
from sundsbo_mpi.config.settings import assignments, merge
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.checkpoint import About
    from sundsbo_mpi.config.resolving import Config, Request
    from sundsbo_mpi.config.settings import Layer


def stored_settings(request: Request, found: Sequence[Candidate], ranks: int) -> Layer | None:
    """Return the settings of the run to go on with, None where a run begins.

    Raises:
        UsageError: other ranks were started, or another task or method is asked for.
    """
    if not request.resume:
        return None
    newest = found[0].manifest
    require_agents(newest, Path(request.resume), ranks)
    stored = {table: dict(values) for table, values in newest.about.config.items()}
    asked = merge(request.flags, assignments(request.sets))
    for table in ("task", "algorithm"):  # another one need not have the options that are stored
        wanted = asked.get(table, {}).get("name")
        if not (table == "task" and same_task(stored[table]["name"], wanted)):
            require_same_value(f"{table}.name", stored[table]["name"], wanted)
    # How the former file was read and named does not hold for another one.
    if "file" in request.flags.get("topology", {}):
        stored["topology"] = {}
    for key in ("file", "trace", "overwrite"):
        stored["output"].pop(key, None)
    stored["output"]["checkpoint"] = request.resume
    return stored


def judged(
    request: Request, config: Config, about: About, found: Sequence[Candidate]
) -> tuple[Resumption | None, list[str]]:
    """Judge whether the run may go on from its newest checkpoint; also return what to say.

    Raises:
        UsageError: it may not.
    """
    if not found:
        return None, []
    newest = found[0].manifest
    require_same_run(newest, about.config)
    relinked = newest.about.topology_sha256 != about.topology_sha256
    if relinked and "file" not in request.flags.get("topology", {}):
        raise UsageError(
            f"{config.topology.file} has other weights than when the checkpoint was kept: go on "
            f"over them with --topology {config.topology.file}, or bring the former file back."
        )
    said = changed_surroundings(newest.about, about)
    if relinked:
        said.append("the weights are others than before: the techniques begin anew from here")
    if config.output.file and not about.whole:
        raise UsageError(
            f"--output {config.output.file} begins a new run file, which needs all "
            f"{about.agents} agents, but the checkpoint has {len(about.numbers)} that are left: "
            "leave --output out."
        )
    file = None if config.output.file else newest.run_file or None
    return Resumption(tuple(found), relinked, file), said
