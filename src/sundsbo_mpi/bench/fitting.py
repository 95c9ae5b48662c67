"""From measured rounds to costs per message and byte, and the check on rounds of iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.algorithms.messages import Sizes, message_bytes
from sundsbo_mpi.bench.cases import ROUND
from sundsbo_mpi.bench.model import CLASSES, Fit, Load, Model, fit
from sundsbo_mpi.bench.prediction import decentralised
from sundsbo_mpi.bench.record import Check, Key
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sundsbo_mpi.bench.record import Sent, Series

LARGEST_CHECKED = 2**26
"""Bytes of an iteration's messages: matrices may be more than hosts have room for."""


def checked_messages(sizes: Sizes) -> dict[tuple[int, ...], tuple[str, ...]]:
    """Return the bytes of the messages in an iteration, and which methods send them.

    Of all methods that send anything, with their default options, but for those that send
    more than ``LARGEST_CHECKED`` bytes to a neighbour and those for which the problem is too large.
    """
    found: dict[tuple[int, ...], tuple[str, ...]] = {}
    for name in decentralised():
        with suppress(UsageError):
            messages = message_bytes(by_default(METHODS[name]), sizes)
            if sum(messages) <= LARGEST_CHECKED:
                found[messages] = (*found.get(messages, ()), name)
    return found


def unchecked(methods: Sequence[Sent]) -> list[str]:
    """Return the methods that send something and are not among these."""
    checked = {name for sent in methods for name in sent.names}
    return [name for name in decentralised() if name not in checked]


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
        key: Check(np.array([models[key].iteration_seconds(load, b) for b in messages]), own)
        for key, own in measured.items()
    }
