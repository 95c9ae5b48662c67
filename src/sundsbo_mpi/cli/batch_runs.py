"""The runs that a batch script starts, checked as ``sundsbo-mpi run`` would, with their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.batch import Run
from sundsbo_mpi.batch.arrays import combinations
from sundsbo_mpi.checkpoint import Folder
from sundsbo_mpi.checkpoint.resuming import candidates, require_same_run
from sundsbo_mpi.cli import run as run_command
from sundsbo_mpi.config.methods import configured_weights, suited
from sundsbo_mpi.config.resolving import resolve
from sundsbo_mpi.config.tables import NOT_SHARED
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from sundsbo_mpi.config.resolving import Config


def planned(
    name: str, flags: Sequence[str], arrays: Iterable[str], agents: int | None
) -> list[Run]:
    """Return the runs of a batch; those of an array are numbered.

    Args:
        name: What their files are called after.
        flags: Of ``sundsbo-mpi run``, the topology among them.
        arrays: Settings with their values, see ``combinations``.
        agents: How many the user expects; None for any number.

    Raises:
        UsageError: one of the runs would be refused, or its run file is there already.
    """
    combined = combinations(arrays)
    runs = []
    for number, sets in enumerate(combined):
        stem = name if len(combined) == 1 else f"{name}-{number}"
        settings = (*flags, *(word for text in sets for word in ("--set", text)))
        runs.append(_planned(stem, settings, agents))
    return runs


def _planned(stem: str, settings: tuple[str, ...], agents: int | None) -> Run:
    config = resolve(run_command.request_of(settings))
    if odd := next((key for key in NOT_SHARED if getattr(config.output, key)), None):
        raise UsageError(
            f"output.{odd} is the script's own: leave it out, and choose names with --name."
        )
    weights = configured_weights(config.topology)
    if agents not in (None, weights.agents):
        raise UsageError(
            f"{config.topology.file} has {number_of(weights.agents, 'agent')}, but --agents "
            f"is {agents}: leave --agents out, or take another topology."
        )
    mixed, _ = suited(config, weights)
    output, saved = Path(f"{stem}.h5"), Path(f"{stem}.saved")
    if Folder(saved).newest_first():
        _require_same(saved, config, mixed.sha256)
    elif output.exists():
        raise UsageError(
            f"the run file '{output}' is there already, and '{saved}' has no checkpoint to go on "
            "from: choose another --name."
        )
    resuming = ("--iterations", str(config.run.iterations))
    return Run(weights.agents, settings, str(output), str(saved), resuming)


def _require_same(saved: Path, config: Config, digest: str) -> None:
    """Refuse to go on from the checkpoint of another run, which the job would do in silence."""
    stored = candidates(saved)[0].manifest
    advice = f"'{saved}' has checkpoints already, and the job would go on from them: choose another"
    try:
        require_same_run(stored, config.as_dict())
    except UsageError as error:
        raise UsageError(f"{error} ({advice} --name.)") from None
    if stored.about.whole and stored.about.topology_sha256 != digest:
        raise UsageError(f"{config.topology.file} has other weights than before. {advice} --name.")
