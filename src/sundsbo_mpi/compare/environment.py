"""Where something ran and with what: the facts in which clusters differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sundsbo_mpi.runfile import TRANSPORT, RunData
from sundsbo_mpi.versions import library

CHANGED = ", and MPI where there was no room"
MOST_HOSTS = 3
"""How many names of hosts are told."""


def environment(run: RunData) -> dict[str, str]:
    """Return the facts about a run by name, those that its file lacks left out."""
    about, agents = run.attributes, run.agents_info
    threads = {"threads per agent": counted(agents["threads"].tolist())}
    place = hosts_and_devices(agents, agents["host"].tolist())
    return library_and_versions(about) | _transport(run) | place | threads


def _transport(run: RunData) -> dict[str, str]:
    """Return what messages went over; of a run that changed it, that it did, but not the bytes."""
    if "transport" not in run.attributes:
        return {}
    changed = any(event.kind == TRANSPORT for event in run.events)
    return {"transport": run.attributes["transport"] + (CHANGED if changed else "")}


def library_and_versions(about: Mapping[str, Any]) -> dict[str, str]:
    """Return what the attributes of a file say about the MPI library and the packages."""
    found = {"MPI library": library(str(about["mpi_library"]))} if "mpi_library" in about else {}
    versions = {n.removeprefix("version_"): v for n, v in about.items() if n.startswith("version_")}
    return found | {name: str(value) for name, value in versions.items()}


def hosts_and_devices(ranks: Mapping[str, Any], nodes: Sequence[Any]) -> dict[str, str]:
    """Return hosts, ranks per node, and devices.

    Args:
        ranks: ``host`` and ``device`` of every rank, (n,).
        nodes: Of every rank something that is equal on the ranks of a node.
    """
    sizes = sorted(Counter(nodes).values(), reverse=True)
    return {
        "hosts": _few(ranks["host"].tolist()),
        "ranks per node": " + ".join(map(str, sizes)),
        "devices": counted(str(device).partition(":")[0] for device in ranks["device"]),
    }


def _few(hosts: list[str]) -> str:
    names = list(dict.fromkeys(hosts))
    more = [f"{len(names) - MOST_HOSTS} more"] if len(names) > MOST_HOSTS else []
    return ", ".join(names[:MOST_HOSTS] + more)


def counted(values: Iterable[Any]) -> str:
    """Name a value that all ranks share, or each with the number of ranks that have it."""
    counts = Counter(values)
    if len(counts) == 1:
        return str(next(iter(counts)))
    return ", ".join(f"{value} ({count} ranks)" for value, count in sorted(counts.items()))
