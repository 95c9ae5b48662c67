"""Why what ``sundsbo-mpi predict`` tells may be far off: one sentence for each reason."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.bench.crowding import crowd_in
from sundsbo_mpi.bench.message_sizes import LARGEST, measurable
from sundsbo_mpi.texttable import seconds, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sundsbo_mpi.bench.model import Fit
    from sundsbo_mpi.bench.prediction import Prediction
    from sundsbo_mpi.bench.record import Bench

NEAR = 0.1
"""Beyond the sizes that were measured: so much longer, or so much cheaper, is not much."""


OFF = 1.5
"""A bench whose own rounds took so many times what it predicts, or so much less, predicts badly."""


def doubts(
    path: str, bench: Bench, way: tuple[str, str], found: Sequence[Prediction]
) -> Iterator[str]:
    """Say where the bench is no good ground for what was predicted.

    Args:
        path: Of the bench.
        bench: What was measured.
        way: Transport and buffers of the predictions.
        found: The predictions.
    """
    if crowd := crowd_in(bench):
        yield (
            f"'{path}' was timed where {crowd.fact}: links cost less where every rank has a core; "
            "run bench with no more ranks on a node than it has cores"
        )
    yield from _off(path, bench, way)
    model = bench.model(*way)
    most = max((one.ranks_per_node for one in found), default=0)
    if most > model.ranks_per_node:
        yield (
            f"{most} ranks on a node are predicted, '{path}' had at most {model.ranks_per_node}: "
            f"what more of them take from one another is a guess; run bench with {most} on a node"
        )
    sent = [one for one in found if one.bytes_all]
    yield from _long(path, int(bench.sizes.max()), sent)
    yield from _short(path, int(bench.sizes.min()), model.links, sent)


def _off(path: str, bench: Bench, way: tuple[str, str]) -> Iterator[str]:
    """Say so where the bench has measured rounds of methods that its own fit is far from."""
    if way not in bench.checks or not bench.methods:
        return
    check = bench.checks[way]
    with np.errstate(all="ignore"):  # what is 0 or not finite was not measured by a bench
        apart = np.nan_to_num(np.abs(np.log(check.measured / check.predicted)), nan=0, posinf=0)
    worst = int(apart.argmax())
    if apart[worst] > math.log(OFF):
        yield (
            f"the rounds of {bench.methods[worst].names[0]} took '{path}' itself "
            f"{seconds(check.measured[worst])} where it predicts "
            f"{seconds(check.predicted[worst])}: what is predicted here may be as far off; run "
            "bench with more --repeats, on a quiet node with a core for every rank"
        )


def _long(path: str, measured: int, sent: Sequence[Prediction]) -> Iterator[str]:
    longest = max((one.longest for one in sent), default=0)
    if longest > (1 + NEAR) * measured:
        more = f"; run bench with {measurable(longest)} among its --sizes"
        yield (
            f"messages of up to {size(longest)} are predicted, '{path}' measured up to "
            f"{size(measured)}: the cost of longer ones is extrapolated"
            f"{more if measured < LARGEST else ', as a bench measures none'}"
        )


def _short(
    path: str, measured: int, links: Mapping[str, Fit], sent: Sequence[Prediction]
) -> Iterator[str]:
    """Say so where the fit makes shorter messages cheaper: their latency was not measured."""
    shorter = [
        one.shortest
        for one in sent
        for link in links.values()
        if link.beta * (measured - measurable(one.shortest))
        > NEAR * (link.alpha + link.beta * measured)
    ]
    if shorter:
        yield (
            f"messages down to {size(min(shorter))} are predicted, '{path}' measured none below "
            f"{size(measured)}: the cost of shorter ones is extrapolated; run bench with "
            f"{measurable(min(shorter))} among its --sizes"
        )
