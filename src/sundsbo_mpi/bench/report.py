"""What a bench found, as tables for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.text import Text

from sundsbo_mpi.bench.model import CLASSES
from sundsbo_mpi.bench.parts import ALL
from sundsbo_mpi.bench.record import NOTHING
from sundsbo_mpi.texttable import DASH, seconds, size, table
from sundsbo_mpi.versions import library
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sundsbo_mpi.bench.record import Bench, Key, Sent, Series

EXPLAINED = (
    "Seconds are medians over the repeats, then over the ranks, and in brackets those that 95 % of "
    "the ranks stay below. A round packs, exchanges and mixes; its exchange is posted and waited "
    "for; those of mpi-... are MPI alone."
)


def render_bench(bench: Bench) -> RenderableType:
    """Say where it ran, what exchanges cost by size, and what the model makes of it."""
    parts: list[RenderableType] = [_facts(bench), *_by_size(bench)]
    parts.append(Text(EXPLAINED))
    if len(bench.edges):
        parts += [_pairs(bench), _links(bench), *_checks(bench)]
    return Group(*parts)


def _facts(bench: Bench) -> Text:
    about, ranks = bench.attributes, bench.ranks
    nodes = len(np.unique(ranks["node"]))
    bound = ", ".join(dict.fromkeys(ranks["binding"].tolist()))
    return Text(
        f"{number_of(len(ranks['host']), 'rank')} on {number_of(nodes, 'node')} (cores {bound}); "
        f"{about['topology']}; {library(str(about['mpi_library']))}; {about['repeats']} repeats"
    )


def _by_size(bench: Bench) -> list[RenderableType]:
    shown = []
    for links in dict.fromkeys(key.links for key in bench.series if key.links != NOTHING):
        of_links = {key: s for key, s in bench.series.items() if key.links == links}
        what = "all links" if links == ALL else f"links of the {links}"
        shown.append(_series_table(bench, f"exchanges with the neighbours, {what}", of_links))
    beside = {key: s for key, s in bench.series.items() if key.links == NOTHING}
    shown.append(_series_table(bench, "beside them", beside))
    return shown


def _series_table(bench: Bench, title: str, found: dict[Key, Series]) -> RenderableType:
    header = ("what", "transport", "buffers", *(size(b) for b in bench.sizes))
    rows = [
        (
            key.what,
            DASH if key.transport == NOTHING else key.transport,
            key.buffers,
            *(_spread(of_ranks) for of_ranks in series.median),
        )
        for key, series in sorted(found.items())
    ]
    return table(header, rows, title=title, words=3, whole=3)


def _spread(of_ranks: np.ndarray) -> str:
    return f"{seconds(float(np.median(of_ranks)))} [{seconds(float(np.percentile(of_ranks, 95)))}]"


def _pairs(bench: Bench) -> RenderableType:
    pairs, node = bench.pairs, bench.ranks["node"]
    together = node[pairs["first"]] == node[pairs["second"]]
    rows = []
    for kind, chosen in zip(CLASSES, (together, ~together), strict=True):
        if chosen.any():
            latency, bandwidth = pairs["latency_s"][chosen], pairs["bandwidth"][chosen]
            late, slow = np.percentile(latency, 95), np.percentile(bandwidth, 5)
            rows.append(
                (
                    kind,
                    str(chosen.sum()),
                    f"{seconds(float(np.median(latency)))} [{seconds(float(late))}]",
                    f"{size(float(np.median(bandwidth)))}/s [{size(float(slow))}/s]",
                )
            )
    title = (
        f"pairs of neighbours, both directions at once: seconds of {size(bench.sizes.min())}, "
        f"bytes per second and direction of {size(bench.sizes.max())} (in brackets the slowest 5 %)"
    )
    return table(("link", "pairs", "latency", "bandwidth"), rows, title=title, whole=1)


def _links(bench: Bench) -> RenderableType:
    rows = [
        (
            transport,
            buffers,
            kind,
            seconds(fitted.alpha),
            f"{size(1 / fitted.beta)}/s" if fitted.beta else DASH,
            _percent(bench.largest_error(fitted)),
        )
        for (transport, buffers), fits in bench.links.items()
        for kind, fitted in fits.items()
    ]
    title = "fitted to the rounds: seconds per neighbour = alpha + beta bytes"
    header = ("transport", "buffers", "link", "alpha", "1/beta", "largest error")
    return table(header, rows, title=title, words=3, whole=3)


def _percent(ratio: float) -> str:
    return DASH if math.isnan(ratio) else f"{100 * ratio:.0f} %"


def _checks(bench: Bench) -> list[RenderableType]:
    """Return a table for each place of the buffers."""
    about = bench.attributes
    shown = []
    for buffers in dict.fromkeys(buffers for _, buffers in bench.checks):
        ways = {t: check for (t, b), check in bench.checks.items() if b == buffers}
        rows = [
            (
                _sent(sent),
                *(_compared(c.predicted[place], c.measured[place]) for c in ways.values()),
            )
            for place, sent in enumerate(bench.methods)
        ]
        title = (
            f"the rounds of an iteration with x of {about['payload_x']} and y of "
            f"{about['payload_y']} numbers, {buffers} buffers: predicted / measured"
        )
        shown.append(table(("methods", *ways), rows, title=title))
    return shown


def _compared(predicted: float, measured: float) -> str:
    # On a line of its own, the ratio leaves room for the names of methods.
    return f"{seconds(predicted)} / {seconds(measured)}\n= {predicted / measured:.2f}"


def _sent(sent: Sent) -> str:
    rounds = number_of(sent.rounds, "round")
    return f"{', '.join(sent.names)}: {rounds}, {size(sent.bytes)} to a neighbour"
