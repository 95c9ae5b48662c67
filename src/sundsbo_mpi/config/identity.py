"""What makes two runs the same: their configurations without what no iterate depends on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WITHOUT_EFFECT = {
    "run": (
        "device",
        "max_walltime",
        "overlap",
        "transport",
        "gpu_direct",
        "on_nan",
        "on_failure",
        "comm_timeout",
    ),
    "topology": ("place",),
    "task": ("data_dir",),
}
"""Settings, by table, that change where, how fast and how safely a run computes but not what."""


def identity(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings, by table, on which the iterates depend.

    Topology files of the same name have the same contents, wherever they are; so have files of
    tasks.
    """
    plain: dict[str, Any] = json.loads(json.dumps(config))
    plain.pop("output", None)
    for table, keys in WITHOUT_EFFECT.items():
        for key in keys:
            plain.get(table, {}).pop(key, None)
    topology = plain.get("topology", {})
    topology["file"] = Path(topology.get("file", "")).name
    if "name" in plain.get("task", {}):
        plain["task"]["name"] = _placeless(plain["task"]["name"])
    return plain


def same_task(name: object, other: object) -> bool:
    """Say whether two names are of one task, whose file may lie in different folders."""
    return bool(_placeless(name) == _placeless(other))


def _placeless(name: Any) -> Any:
    """Return the name of a task without the folder of its file."""
    return Path(name).name if isinstance(name, str) and ".py:" in name else name
