"""From measured rounds to costs per message and byte, and the check on rounds of iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.bench.cases import ROUND
from sundsbo_mpi.bench.messages import Sizes, message_bytes
from sundsbo_mpi.bench.model import CLASSES, Fit, Load, Model, fit
from sundsbo_mpi.bench.record import Check, Key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sundsbo_mpi.bench.record import Series

CHECKED = ("sun-dsbo-se", "sun-dsbo-gt", "sun-dsbo-semi-gt", "sun-dsbo-non-atc-gt")
"""A method of each family: one round of one vector per variable, two such rounds, one of two."""


def checked_messages(sizes: Sizes) -> dict[tuple[int, ...], str]:
    """Return the bytes of the messages in an iteration, and which checked methods send them."""
    found: dict[tuple[int, ...], str] = {}
    for name in CHECKED:
        messages = message_bytes(by_default(METHODS[name]), sizes)
        found[messages] = f"{found[messages]}, {name}" if messages in found else name
    return found


def fit_links(
    series: Mapping[Key, Series], sizes: NDArray[np.int64], networks: Mapping[str, Load]
) -> dict[tuple[str, str], dict[str, Fit]]:
    """Fit alpha and beta of every transport for every class of links.

    Each class is fitted to rounds on its own links alone; where a network has links of both, its
    rounds with all of them are left to check the sum.

    Args:
        series: What was measured.
        sizes: Of the messages, (S,).
        networks: The links of every network that was measured, by its name.
    """
    found: dict[tuple[str, str], dict[str, Fit]] = {}
    for key, seconds in series.items():
        used = networks[key.links].used if key.what == ROUND else ()
        if len(used) == 1:
            busiest = int(networks[key.links].messages[CLASSES.index(used[0])].max())
            fits = found.setdefault((key.transport, key.buffers), {})
            fits[used[0]] = fit(busiest, sizes, seconds.slowest)
    return found


def check(
    models: Mapping[tuple[str, str], Model],
    measured: Mapping[tuple[str, str], NDArray[np.float64]],
    load: Load,
    messages: Sequence[tuple[int, ...]],
) -> dict[tuple[str, str], Check]:
    """Put the predicted seconds of an iteration's rounds beside the measured ones."""
    return {
        key: Check(np.array([model.iteration_seconds(load, sizes) for sizes in messages]), own)
        for (key, model), own in ((item, measured[item[0]]) for item in models.items())
    }
