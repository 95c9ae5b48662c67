"""The weight-matrix files that the runs need, named after what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.topology import Mixing, builder_of, read_weights, write_weights

if TYPE_CHECKING:
    from sundsbo_mpi.reproduce.paper import Topology


def topology_path(directory: Path, agents: int, topology: Topology) -> Path:
    """Return where the file of a topology is; equal names mean equal contents."""
    words = [topology["graph"], f"n{agents}"]
    words += [f"{key.replace('_', '-')}-{_text(value)}" for key, value in _options(topology)]
    return directory / "topologies" / f"{'_'.join(words)}.npz"


def topology_command(path: Path, agents: int, topology: Topology) -> list[str]:
    """Return the arguments of ``sundsbo-mpi`` that write the file."""
    words = ["topology", topology["graph"], "--agents", str(agents)]
    for key, value in _options(topology):
        words += [f"--{key.replace('_', '-')}", _text(value)]
    return [*words, "-o", str(path)]


def write_topology(path: Path, agents: int, topology: Topology) -> None:
    """Write the file, unless it is there.

    Raises:
        UsageError: the topology cannot be built or written.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_weights(build(agents, topology), str(path))


def planned_weights(path: Path, agents: int, topology: Topology) -> Mixing:
    """Return the weights of the file, or those that will be in it.

    Raises:
        UsageError: the file is damaged, or the topology cannot be built.
    """
    return read_weights(str(path)).weights if path.exists() else build(agents, topology)


def build(agents: int, topology: Topology) -> Mixing:
    """Build the weights, or the sequence of weights, of a topology.

    Raises:
        UsageError: it has no such weights.
    """
    return builder_of(topology["graph"])(agents, **dict(_options(topology)))


def _options(topology: Topology) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in topology.items() if key != "graph"]


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else f"{value:.6g}"
