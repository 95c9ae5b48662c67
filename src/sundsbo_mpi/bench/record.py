"""What a bench has found, as its file holds it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sundsbo_mpi.bench.model import Fit, Model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Array = NDArray[Any]

NOTHING = "none"
"""Of what has no transport or links, such as memcpy."""


class Key(NamedTuple):
    """What a series of seconds is about; each word a group of the file."""

    what: str
    transport: str
    buffers: str
    links: str


class Series(NamedTuple):
    """Seconds by size and rank, and those of the slowest rank."""

    median: Floats
    p95: Floats
    slowest: Floats


class Check(NamedTuple):
    """Seconds of the rounds of the checked methods, (M,)."""

    predicted: Floats
    measured: Floats


class Sent(NamedTuple):
    """What methods, named together where they send the same, send per iteration."""

    names: tuple[str, ...]
    rounds: int
    bytes: int
    """To every neighbour."""

    @classmethod
    def of(cls, messages: Sequence[int], names: Sequence[str]) -> Sent:
        """Say that these methods send messages of these bytes."""
        return cls(tuple(names), len(messages), sum(messages))


@dataclass(frozen=True)
class Bench:
    """All that a bench has found; shapes as in the table of ``bench.file``."""

    attributes: Mapping[str, str | int | float]
    sizes: NDArray[np.int64]
    ranks: Mapping[str, Array]
    edges: NDArray[np.int64]
    pairs: Mapping[str, Array]
    series: Mapping[Key, Series]
    links: Mapping[tuple[str, str], Mapping[str, Fit]]
    """By transport and buffers, then by class of links."""
    methods: tuple[Sent, ...]
    checks: Mapping[tuple[str, str], Check]

    def model(self, transport: str, buffers: str) -> Model:
        """Return the fitted costs of a transport.

        Raises:
            KeyError: it was not measured.
        """
        return model_of(self.links[transport, buffers], self.ranks["node"])

    def largest_error(self, fitted: Fit) -> float:
        """Return the error of one of ``links``; NaN where it would be 0 whatever was measured.

        It would where there are no more sizes than costs above 0: two sizes fix a line.
        """
        costs = sum(cost > 0 for cost in (fitted.alpha, fitted.beta))
        return fitted.error if len(self.sizes) > costs else math.nan

    def place(self, method: str) -> int | None:
        """Return which of ``methods`` has a method among its names; None where none has."""
        return next((p for p, sent in enumerate(self.methods) if method in sent.names), None)


def model_of(fits: Mapping[str, Fit], nodes: Array) -> Model:
    """Return the model of what was fitted with ranks on these nodes, (n,)."""
    return Model(fits, int(np.unique(nodes, return_counts=True)[1].max()))
