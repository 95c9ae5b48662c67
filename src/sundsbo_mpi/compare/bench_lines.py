"""The comparison of benches as CSV: a line for each thing measured, plain numbers in seconds.

The column ``what`` tells the kinds of lines apart; columns that are not a kind's stay empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sundsbo_mpi.bench.model import OTHER, SAME
from sundsbo_mpi.bench.parts import ALL
from sundsbo_mpi.bench.record import Bench
from sundsbo_mpi.compare.reading import NamedBench

Line = dict[str, Any]


def lines(benches: Sequence[NamedBench]) -> list[Line]:
    """Return the lines of every bench.

    One for each series and size, medians over the ranks; for each ``pair`` of neighbours; for each
    ``model``, of a transport and class of links; and for each ``check`` of a method by a transport.
    """
    return [
        {"bench": named.number, "file": named.path, **line}
        for named in benches
        for kind in (_series, _pairs, _models, _checks)
        for line in kind(named.bench)
    ]


def _series(bench: Bench) -> Iterator[Line]:
    for key, series in bench.series.items():
        for place, size in enumerate(bench.sizes):
            yield {
                **key._asdict(),
                "message_bytes": int(size),
                "median_s": float(np.median(series.median[place])),
                "p95_s": float(np.median(series.p95[place])),
                "slowest_rank_s": float(series.slowest[place]),
            }


def _pairs(bench: Bench) -> Iterator[Line]:
    """Tell of each pair the seconds of the shortest message and the rate of the longest."""
    pairs, node = bench.pairs, bench.ranks["node"]
    for place, (first, second) in enumerate(zip(pairs["first"], pairs["second"], strict=True)):
        yield {
            "what": "pair",
            "links": SAME if node[first] == node[second] else OTHER,
            "first": int(first),
            "second": int(second),
            "latency_s": float(pairs["latency_s"][place]),
            "bytes_per_s": float(pairs["bandwidth"][place]),
        }


def _models(bench: Bench) -> Iterator[Line]:
    for (transport, buffers), fits in bench.links.items():
        for kind, fitted in fits.items():
            yield {
                "what": "model",
                "transport": transport,
                "buffers": buffers,
                "links": kind,
                "alpha_s": fitted.alpha,
                "beta_s_per_byte": fitted.beta,
                "largest_error": bench.largest_error(fitted),
            }


def _checks(bench: Bench) -> Iterator[Line]:
    for (transport, buffers), check in bench.checks.items():
        for sent, predicted, measured in zip(bench.methods, *check, strict=True):
            for name in sent.names:
                yield {
                    "what": "check",
                    "transport": transport,
                    "buffers": buffers,
                    "links": ALL,
                    "method": name,
                    "rounds": sent.rounds,
                    "bytes_per_iteration": sent.bytes,
                    "predicted_s": float(predicted),
                    "measured_s": float(measured),
                }
