"""The settings of an earlier run, from its run file, for another one like it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from sundsbo_mpi.config.settings import Layer
from sundsbo_mpi.config.tables import NOT_SHARED
from sundsbo_mpi.config.written import require_plain
from sundsbo_mpi.errors import UsageError


def settings_of(
    path: str, tables: Collection[str], *, topology: bool = True
) -> dict[str, dict[str, Any]]:
    """Return the settings of a run but for the files that it wrote.

    A topology file that is not there any more gives way to the run file, which has the weights.

    Args:
        path: The run file, of a finished run or not.
        tables: The names of the tables that a configuration has.
        topology: Whether the run's topology is wanted, and not only where its agents sit.

    Raises:
        UsageError: it is no sound run file, or its settings are not those of a run.
    """
    from sundsbo_mpi.runfile import read_run

    config = read_run(path).config
    if not _whole(config, tables):
        raise UsageError(
            f"'{path}' does not say how its run was configured: give the file of another run."
        )
    require_plain(config, f"'{path}'")
    settings = {table: dict(config[table]) for table in tables}
    for key in NOT_SHARED:
        settings["output"].pop(key, None)
    network = settings["topology"]
    if not (topology and Path(str(network.get("file"))).exists()):
        settings["topology"] = {key: network[key] for key in ("place",) if key in network}
        settings["topology"] |= {"file": path} if topology else {}
    return settings


def fitting(
    settings: Layer, names: Mapping[str, str], known: Mapping[str, Collection[str]]
) -> dict[str, Mapping[str, Any]]:
    """Return the settings of a run without what another task or method does not have.

    Options of the very same one are all kept, so that what it does not know is refused.

    Args:
        settings: Those of the earlier run.
        names: The task and the method that are wanted now.
        known: The options by table.
    """

    def fit(table: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if names.get(table) in (None, values.get("name")):
            return values
        return {key: value for key, value in values.items() if key in (*known[table], "name")}

    return {table: fit(table, values) for table, values in settings.items()}


def differing_weights(path: str | None, topology_sha256: str) -> tuple[str, ...]:
    """Say so where the weights are not those of the earlier run at ``path``, if there is one."""
    if path is None:
        return ()
    from sundsbo_mpi.runfile import read_run

    same = read_run(path).attributes.get("topology_sha256") == topology_sha256
    return () if same else (f"the weights are others than those of '{path}'",)


def _whole(config: Mapping[str, Any], tables: Collection[str]) -> bool:
    whole = all(isinstance(config.get(table), dict) for table in tables)
    named = ("task", "algorithm")
    return whole and all(isinstance(config[table].get("name"), str) for table in named)
