"""The comparison as tables of text, which are printed and written alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sundsbo_mpi.campaign.tables import Table, spread_text
from sundsbo_mpi.metric_names import local_name
from sundsbo_mpi.reproduce.comparison import Entry, columns, contests, entries
from sundsbo_mpi.statistics import Spread, spread
from sundsbo_mpi.texttable import DASH, number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sundsbo_mpi.reproduce.paper import Experiment
    from sundsbo_mpi.reproduce.results import Cell


def tables(experiment: Experiment, cells: Sequence[Cell]) -> list[Table]:
    """Return all tables of an experiment, some perhaps without rows."""
    all_entries = entries(experiment, cells)
    return [
        *(_digits(experiment, cells, metric, all_entries) for metric in experiment.metrics),
        _ends(experiment, cells),
        _between(experiment, cells),
        _not_targets(experiment, cells),
        missing_table(cells),
    ]


def _digits(
    experiment: Experiment, cells: Sequence[Cell], metric: str, found: Sequence[Entry]
) -> Table:
    shown = columns(experiment, cells)
    header = ("condition", "method", "", *(str(k) for k in shown))
    rows: list[tuple[str, ...]] = []
    for cell in cells if shown else ():
        of_cell = [e for e in found if e.metric == metric]
        mine = [e for e in of_cell if (e.method, e.condition) == (cell.method, cell.condition)]
        rows.append((cell.condition, cell.method, "ours", *(_spread(e.ours, metric) for e in mine)))
        if any(math.isfinite(e.paper_mean) for e in mine):
            printed = [_spread(Spread(e.paper_mean, e.paper_std, 0), metric) for e in mine]
            rows.append(("", "", "paper", *printed))
            rows.append(("", "", "ours - paper", *(_difference(e) for e in mine)))
    title = f"{experiment.name}: {metric.replace('_', ' ')}, mean ± standard deviation over seeds"
    return Table(title, header, tuple(rows), words=3)


def _ends(experiment: Experiment, cells: Sequence[Cell]) -> Table:
    """What averaged accuracy hides: the agents' own models, their disagreement, and the cost."""
    metric = experiment.metrics[0]
    variables = tuple(dict.fromkeys(v for cell in cells for v in cell.variables))
    header = (
        *("condition", "method", "runs", "averaged model", "agents' own models"),
        *(f"consensus {v}" for v in variables),
        *("seconds", "bytes per agent"),
    )
    rows = tuple(
        (
            cell.condition,
            cell.method,
            f"{len(cell.runs)} of {len(cell.runs) + len(cell.troubles)}",
            *(_spread(spread(cell.last(m).values()), metric) for m in (metric, local_name(metric))),
            *(number(spread(cell.last(f"consensus/{v}").values()).mean) for v in variables),
            number(spread(cell.seconds.values()).mean),
            number(spread(cell.bytes_sent.values()).mean),
        )
        for cell in cells
    )
    return Table(f"{experiment.name}: at the last evaluation ({metric})", header, rows, words=2)


def _between(experiment: Experiment, cells: Sequence[Cell]) -> Table:
    header = ("condition", "metric", "difference", "mean", "95 % interval", "pairs")
    rows = tuple(
        (
            contest.condition,
            contest.metric,
            f"{contest.reference} - {contest.method}",
            signed(contest.interval.mean),
            f"[{signed(contest.interval.low)}, {signed(contest.interval.high)}]",
            str(contest.interval.pairs),
        )
        for contest in contests(experiment, cells)
        if contest.interval.pairs
    )
    title = f"{experiment.name}: methods compared seed by seed, last evaluation (Student's t)"
    return Table(title, header, rows, words=3)


def _not_targets(experiment: Experiment, cells: Sequence[Cell]) -> Table:
    found = [(cell, experiment.printed.get((cell.method, cell.condition))) for cell in cells]
    rows = tuple(
        (cell.condition, cell.method, row.no_target) for cell, row in found if row and row.no_target
    )
    header = ("condition", "method", "why")
    return Table(f"{experiment.name}: printed rows that are no target", header, rows, words=3)


def missing_table(cells: Iterable[Cell]) -> Table:
    """List the runs that are not there, and why."""
    rows = tuple(
        (cell.condition, cell.method, ", ".join(map(str, seeds)), trouble)
        for cell in cells
        for trouble, seeds in _by_reason(cell).items()
    )
    return Table("missing runs", ("condition", "method", "seeds", "reason"), rows, words=4)


def _by_reason(cell: Cell) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for seed, trouble in cell.troubles.items():
        grouped.setdefault(trouble, []).append(seed)
    return grouped


def _spread(value: Spread, metric: str) -> str:
    """Write an accuracy with two decimals, as the paper does."""
    return spread_text(value, "{:.2f}".format if "accuracy" in metric else number)


def _difference(entry: Entry) -> str:
    if math.isnan(entry.difference):
        return DASH
    in_std = f" ({entry.deviations:+.1f} std)" if math.isfinite(entry.deviations) else ""
    return f"{entry.difference:+.2f}{in_std}"


def signed(value: float) -> str:
    """Write a difference with its sign."""
    return DASH if math.isnan(value) else f"{value:+.3g}"
