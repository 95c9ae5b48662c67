"""The run file as it is read: a snapshot of the rows that count, of a running or ended run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile.contents import read_contents
from sundsbo_mpi.runfile.opening import opened
from sundsbo_mpi.runfile.schema import FORMAT, SCALARS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scipy.sparse import csr_array

    from sundsbo_mpi.runfile.contents import Contents
    from sundsbo_mpi.runfile.events import Event
    from sundsbo_mpi.runfile.schema import Array


@dataclass(frozen=True)
class RunData:
    """A run file's contents; every series has one row per evaluation that counts.

    With r rows, n agents and E directed edges: scalar series have shape (r,), those of ``agents``
    (r, n), where files of earlier releases lack ``LATER_COSTS``, and ``edge_bytes`` (r, E).
    ``weights`` has the T matrices of a period one below the other, (T n, n).  ``planned`` rows were
    foreseen; ``modified`` is the time of the last write (UTC).  ``attributes`` are the root
    attributes but for the parsed ``config``; ``final`` maps the saved variables to their shapes
    (n, d), see ``read_final``.  ``damage`` says in a sentence what a damaged file has lost, which
    is NaN here; it is empty for a sound file.
    """

    path: Path
    status: str
    modified: datetime
    attributes: Mapping[str, Any]
    config: Mapping[str, Any]
    events: tuple[Event, ...]
    weights: csr_array
    edges: Array
    agents_info: Mapping[str, Array]
    planned: int
    iteration: Array
    elapsed_s: Array
    wall_s: Array
    task: Mapping[str, Array]
    consensus: Mapping[str, Array]
    invariant: Mapping[str, Array]
    stationarity: Array
    stationarity_residual: Array
    lipschitz: Array
    agents: Mapping[str, Array]
    edge_bytes: Array
    final: Mapping[str, tuple[int, ...]]
    damage: str = ""

    @classmethod
    def of(cls, path: Path, contents: Contents, damage: str = "") -> Self:
        """Arrange the contents of a file by what they mean."""
        attributes = {"format": FORMAT, **contents.attributes}
        groups: dict[str, Any] = {name: {} for name in ("task", "consensus", "invariant", "agents")}
        for series, column in contents.series.items():
            group, _, name = series.partition("/")
            if group in groups:
                groups[group][name] = column
        scalars: dict[str, Any] = {name: contents.series[name] for name in SCALARS}
        return cls(
            path=path,
            status=str(attributes["status"]),
            modified=datetime.fromtimestamp(path.stat().st_mtime, UTC),
            config=_config(attributes.pop("config", "{}")),
            attributes=attributes,
            events=contents.events,
            weights=contents.weights,
            edges=contents.edges,
            agents_info=contents.agents_info,
            planned=contents.planned,
            edge_bytes=contents.series["edges/bytes"],
            final={name: shape for name, (shape, _) in contents.final.items()},
            damage=damage,
            **scalars,
            **groups,
        )

    @property
    def rows(self) -> int:
        """The number of evaluations that count."""
        return len(self.iteration)

    @property
    def agent_count(self) -> int:
        """The number of agents n."""
        return len(self.agents_info["host"])

    @property
    def curves(self) -> dict[str, Array]:
        """Every scalar series by name: a task's metrics plainly, others as ``consensus/x``."""
        named = {f"consensus/{name}": curve for name, curve in self.consensus.items()}
        named |= {f"invariant/{name}": curve for name, curve in self.invariant.items()}
        measured = ("stationarity", "stationarity_residual", "lipschitz")
        return {**self.task, **named, **{name: getattr(self, name) for name in measured}}


def read_run(path: str | Path) -> RunData:
    """Read a run file, also while it is being written and after its writer was killed.

    Raises:
        DamagedError: It is damaged (a ``UsageError``).
        UsageError: There is no such file, it is no run file, or one of another version.
    """
    path = Path(path)
    with opened(path) as file:
        return RunData.of(path, read_contents(file))


def read_final(path: str | Path) -> dict[str, Array]:
    """Return the last iterates of all agents, shape (n, d) for every variable.

    Raises:
        UsageError: It is no run file, a damaged one, or the run was not asked to save them.
    """
    with opened(Path(path)) as file:
        if "final" not in file:
            raise UsageError(f"'{path}' holds no final iterates: run again with --save-final.")
        return {name: saved[()] for name, saved in file["final"].items()}


def _config(text: Any) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"its config is not JSON ({error})") from error
    if not isinstance(config, dict):
        raise TypeError("its config is not a table of options")
    return config
