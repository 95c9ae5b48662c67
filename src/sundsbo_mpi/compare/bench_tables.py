"""Benches beside one another as tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from rich.console import Group as Parts
from rich.console import RenderableType

from sundsbo_mpi.bench.model import OTHER, SAME
from sundsbo_mpi.bench.record import Bench
from sundsbo_mpi.compare.bench_facts import (
    all_keys,
    ends,
    environment,
    settings,
    slowest,
    words,
)
from sundsbo_mpi.compare.quantities import PERCENT, PLAIN, RATES, SECONDS, Units, line
from sundsbo_mpi.compare.reading import NamedBench
from sundsbo_mpi.compare.tables import Rows, known, warnings
from sundsbo_mpi.texttable import DASH, table


def render(benches: Sequence[NamedBench], remarks: Sequence[str]) -> RenderableType:
    """Show what was measured where, and the times that the benches have in common."""
    found = [named.bench for named in benches]
    numbers = ["", *(str(named.number) for named in benches)]
    told: list[tuple[str, Rows]] = [
        (f"messages of {size} bytes (median of the slowest rank)", _times(found, size))
        for size in ends(found)
    ]
    told += [
        ("single pairs of neighbours (median of the pairs)", _pairs(found)),
        ("links: alpha + beta * bytes", _links(found)),
        ("rounds of an iteration: measured (predicted / measured)", _checks(found)),
    ]
    parts: list[RenderableType] = [_compared(benches)]
    parts += [table(numbers, lines, title=title) for title, lines in told if lines]
    for title, facts in (("settings", settings), ("environments", environment)):
        if lines := _differing(found, facts):
            above = f"{title}, where they differ"
            parts.append(table(numbers, lines, title=above, words=len(numbers)))
    return Parts(*parts, *warnings(remarks))


def _compared(benches: Sequence[NamedBench]) -> RenderableType:
    lines = [
        (
            str(named.number),
            str(named.bench.attributes.get("topology", DASH)),
            str(len(named.bench.ranks["host"])),
            str(len(set(named.bench.ranks["host"].tolist()))),
            str(named.path),
        )
        for named in benches
    ]
    return table(("", "topology", "ranks", "hosts", "file"), lines, title="compared", words=5)


def _times(benches: Sequence[Bench], size: int) -> Rows:
    return [
        _line(words(key), (slowest(bench, key, size) for bench in benches), SECONDS)
        for key in all_keys(benches)
    ]


def _pairs(benches: Sequence[Bench]) -> Rows:
    lines = []
    for kind in (SAME, OTHER):
        for name, units in (("latency_s", SECONDS), ("bandwidth", RATES)):
            values = [_of_pairs(bench, name, kind) for bench in benches]
            if not all(map(math.isnan, values)):
                lines.append(_line(f"{name.removesuffix('_s')}, {kind}", values, units))
    return lines


def _of_pairs(bench: Bench, name: str, kind: str) -> float:
    node, pairs = bench.ranks["node"], bench.pairs
    together = node[pairs["first"]] == node[pairs["second"]]
    values = pairs[name][together if kind == SAME else ~together]
    return float(np.median(values)) if values.size else math.nan


def _links(benches: Sequence[Bench]) -> Rows:
    fits = [
        {(*key, kind): fit for key, of in b.links.items() for kind, fit in of.items()}
        for b in benches
    ]
    lines = []
    for key in dict.fromkeys(key for of_bench in fits for key in of_bench):
        of_key = [of_bench.get(key) for of_bench in fits]
        told = ", ".join(key)
        alphas = (math.nan if fit is None else fit.alpha for fit in of_key)
        rates = (1 / fit.beta if fit is not None and fit.beta else math.nan for fit in of_key)
        errors = (
            math.nan if fit is None else bench.largest_error(fit)
            for bench, fit in zip(benches, of_key, strict=True)
        )
        lines += [
            _line(f"alpha, {told}", alphas, SECONDS),
            _line(f"1 / beta, {told}", rates, RATES),
            _line(f"largest error, {told}", errors, PERCENT),
        ]
    return lines


def _checks(benches: Sequence[Bench]) -> Rows:
    """Return the names of methods that send the same, and below them a line per transport."""
    ways = dict.fromkeys(way for bench in benches for way in bench.checks)
    lines: list[Sequence[str]] = []
    for places, names in _together(benches).items():
        lines.append((", ".join(names), *("" for _ in benches)))
        for way in ways:
            checks = [_check(b, place, way) for b, place in zip(benches, places, strict=True)]
            name, *measured = _line("  " + ", ".join(way), (m for m, _ in checks), SECONDS)
            _, *ratios = _line("", (p / m for m, p in checks), PLAIN)
            lines.append((name, *map(_bracketed, measured, ratios)))
    return lines


def _bracketed(measured: str, ratio: str) -> str:
    return measured if measured == DASH else f"{measured} ({ratio})"


def _together(benches: Sequence[Bench]) -> dict[tuple[int | None, ...], list[str]]:
    """Return the methods by their places in the benches: who sends the same in all, together."""
    found: dict[tuple[int | None, ...], list[str]] = {}
    for name in dict.fromkeys(n for bench in benches for sent in bench.methods for n in sent.names):
        found.setdefault(tuple(bench.place(name) for bench in benches), []).append(name)
    return found


def _check(bench: Bench, place: int | None, way: tuple[str, str]) -> tuple[float, float]:
    """Return measured and predicted seconds; NaN where they are not there."""
    if place is None or way not in bench.checks:
        return math.nan, math.nan
    return float(bench.checks[way].measured[place]), float(bench.checks[way].predicted[place])


def _differing(benches: Sequence[Bench], facts: Callable[[Bench], dict[str, str]]) -> Rows:
    found = [facts(bench) for bench in benches]
    names = dict.fromkeys(name for of_bench in found for name in of_bench)
    lines = [(name, *(of_bench.get(name, DASH) for of_bench in found)) for name in names]
    return [(name, *values) for name, *values in lines if len(set(values)) > 1]


def _line(name: str, values: Iterable[float], units: Units) -> Sequence[str]:
    return line(name, [known([value]) for value in values], units)
