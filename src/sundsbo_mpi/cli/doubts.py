"""Why what ``sundsbo-mpi predict`` tells may be far off: one sentence for each reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sundsbo_mpi.bench.crowding import taking_turns
from sundsbo_mpi.bench.message_sizes import LARGEST, measurable
from sundsbo_mpi.texttable import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sundsbo_mpi.bench.model import Fit, Model
    from sundsbo_mpi.bench.prediction import Prediction
    from sundsbo_mpi.bench.record import Bench

NEAR = 0.1
"""Beyond the sizes that were measured: so much longer, or so much cheaper, is not much."""


def doubts(path: str, bench: Bench, model: Model, found: Sequence[Prediction]) -> Iterator[str]:
    """Say where the bench is no good ground for what was predicted.

    Args:
        path: Of the bench.
        bench: What was measured.
        model: What its transport made the predictions of.
        found: The predictions.
    """
    if turns := taking_turns(bench):
        yield (
            f"'{path}' was timed while {turns.fact}: links cost less where every rank has a core; "
            "run bench with no more ranks on a node than it has cores"
        )
    most = max((one.ranks_per_node for one in found), default=0)
    if most > model.ranks_per_node:
        yield (
            f"{most} ranks on a node are predicted, '{path}' had at most {model.ranks_per_node}: "
            f"what more of them take from one another is a guess; run bench with {most} on a node"
        )
    sent = [one for one in found if one.bytes_all]
    yield from _long(path, int(bench.sizes.max()), sent)
    yield from _short(path, int(bench.sizes.min()), model.links, sent)


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
