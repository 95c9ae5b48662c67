"""Words in pictures: names for curves by what sets the runs apart, drawn as they are written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.errors import printable

if TYPE_CHECKING:
    from sundsbo_mpi.runfile import RunData

NOT_IN_LABELS = {"save_final", "data_dir", "device", "eval_every", "max_walltime"}
MOST_IN_LABEL = 3


def plain(words: str) -> str:
    """Return what matplotlib draws as just these words, on one line.

    It takes what stands between two dollar signs for a formula; a backslash before one, which it
    does not draw, makes it a sign like others.
    """
    return printable(words).replace("$", r"\$")


def short_labels(runs: Sequence[RunData]) -> list[str]:
    """Name each run by its algorithm and, unless that is too much to read, by its settings.

    Of too many that differ, those of the method are named.  Several runs may get the same name.
    """
    settings = [flatten(run.config) for run in runs]
    keys = dict.fromkeys(key for setting in settings for key in setting)
    algorithms = [str(run.attributes.get("algorithm", "run")) for run in runs]
    differing = [key for key in keys if _sets_apart(key, settings, algorithms)]
    if len(differing) > MOST_IN_LABEL:
        differing = [key for key in differing if key.startswith("algorithm.")]
    if len(differing) > MOST_IN_LABEL:
        return algorithms
    return [
        ", ".join([name] + [_said(key, setting) for key in differing if _said(key, setting)])
        for name, setting in zip(algorithms, settings, strict=True)
    ]


def _said(key: str, setting: dict[str, str]) -> str:
    """Say a setting in a label; one that is unset says nothing."""
    value = setting.get(key, "null")
    return "" if value == "null" else f"{key.rpartition('.')[2]} {value}"


def flatten(config: Any, prefix: str = "") -> dict[str, str]:
    """Return a configuration as text by dotted key."""
    flat: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value if isinstance(value, str) else json.dumps(value)
    return flat


def _sets_apart(key: str, settings: list[dict[str, str]], algorithms: list[str]) -> bool:
    table, _, name = key.rpartition(".")
    found = [setting.get(key) for setting in settings]
    says_something = table != "output" and name not in NOT_IN_LABELS
    return says_something and len(set(found)) > 1 and found != algorithms
