"""Finding the checkpoint to go on from, and whether a run may: on rank 0, then on all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sundsbo_mpi.checkpoint import manifest
from sundsbo_mpi.checkpoint.folder import Folder, agent_file
from sundsbo_mpi.checkpoint.manifest import About, Manifest, read_manifest
from sundsbo_mpi.checkpoint.moment import Expected, Moment, read_moment
from sundsbo_mpi.comm.agreement import jointly
from sundsbo_mpi.config.identity import identity
from sundsbo_mpi.errors import LONGEST, AgreedError, UsageError, brief, printable
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    import torch

    from sundsbo_mpi.agent import Agent

MAY_CHANGE = {"run": ("iterations",)}
"""Settings, by table, that a run may go on with although its iterates depend on them; the topology
is judged by its weights."""


class Candidate(NamedTuple):
    """A checkpoint whose manifest is sound."""

    path: Path
    manifest: Manifest


@dataclass(frozen=True)
class Resumption:
    """What a resumed run begins with."""

    candidates: tuple[Candidate, ...]
    """Newest first."""
    relinked: bool
    """Whether the agents mix with other weights than before."""
    run_file: str | None
    """The run file to go on with, None for a new one."""

    @property
    def threads(self) -> list[int]:
        """The threads of every agent."""
        return self.candidates[0].manifest.threads


def candidates(directory: Path) -> tuple[Candidate, ...]:
    """Return a run's checkpoints, newest first.

    Raises:
        UsageError: there is none that can be used.
    """
    found, complaint = [], None
    for path in Folder(directory).newest_first():
        try:
            found.append(Candidate(path, read_manifest(path / manifest.NAME)))
        except UsageError as error:
            complaint = complaint or error
    if found:
        # An older one stands in for the newest only if nobody was lost and no link changed since.
        newest = found[0].manifest.about
        return tuple(
            candidate
            for candidate in found
            if candidate.manifest.about.numbers == newest.numbers
            and candidate.manifest.about.topology_sha256 == newest.topology_sha256
        )
    raise complaint or UsageError(
        f"there is no checkpoint in '{directory}': expected folders such as iteration-000000500 "
        "there; give the folder that a run was given as --checkpoint."
    )


def require_same_run(stored: Manifest, config: Mapping[str, Any]) -> None:
    """Check that a configuration is that of the checkpoint, up to what may change.

    Raises:
        UsageError: it is another run.
    """
    before, now = identity(stored.about.config), identity(config)
    for table in ("task", "algorithm", "run"):
        for key in {**before[table], **now[table]}:
            if key not in MAY_CHANGE.get(table, ()):
                require_same_value(f"{table}.{key}", before[table].get(key), now[table].get(key))
    if (wanted := now["run"]["iterations"]) < stored.iteration:
        raise UsageError(
            f"run.iterations is {wanted}, but the checkpoint has done {stored.iteration} already: "
            "give --iterations a larger number."
        )


def require_same_value(name: str, was: object, wanted: object) -> None:
    """Check that a setting is what it was, if anything is wanted of it.

    Raises:
        UsageError: it is not.
    """
    if wanted not in (None, was):
        raise UsageError(
            f"{printable(name)} is {brief(wanted)}, but the checkpoint is of a run with "
            f"{brief(was)}: leave it as it was, or begin a new run."
        )


def require_agents(stored: Manifest, directory: Path, ranks: int) -> None:
    """Check that as many ranks were started as there are agents.

    Raises:
        UsageError: there are not.
    """
    if ranks != (left := len(stored.about.numbers)):
        raise UsageError(
            f"the checkpoint in '{directory}' has {number_of(left, 'agent')} but "
            f"{number_of(ranks, 'rank')} started: use mpirun -n {left}."
        )


def changed_surroundings(stored: About, now: About) -> list[str]:
    """Return what has changed since the checkpoint that may change bits of the iterates."""
    said = [
        f"the checkpoint was kept with {_short(name)} {_short(was)}, this is "
        f"{now.surroundings.get(name)}: "
        "iterates may differ in their last bits from those of an uninterrupted run"
        for name, was in stored.surroundings.items()
        if was != now.surroundings.get(name)
    ]
    if stored.task_sha256 != now.task_sha256:
        said.append("the file that defines the task has changed since the checkpoint")
    return said


def _short(text: str) -> str:
    return printable(text)[:LONGEST]


def load(
    agent: Agent, found: Sequence[Candidate], device: torch.device
) -> tuple[Moment, list[str]]:
    """Return an agent's part of the newest checkpoint that all agents can read; collective.

    Raises:
        AgreedError: there is none; what is wrong with the newest is said.
    """
    complaints: list[AgreedError] = []
    tally = agent.tally
    begun = jointly(tally, lambda: agent.algorithm.start(agent.task))
    for path, about in found:
        expected = Expected(tally.agent, about.iteration, about.digests[tally.agent])

        def read(path: Path = path, expected: Expected = expected) -> Moment:
            return read_moment(agent_file(path, tally.agent), expected, begun, device)

        try:
            return jointly(tally, read), [str(complaint) for complaint in complaints]
        except AgreedError as error:
            complaints.append(error)
    raise complaints[0]
