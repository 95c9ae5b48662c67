"""All tables and figures of the paper with what it costs to make them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from sundsbo_mpi.reproduce.paper import experiment, labels
from sundsbo_mpi.texttable import DASH

if TYPE_CHECKING:
    from sundsbo_mpi.reproduce.paper import Experiment, Label


def catalogue() -> Table:
    """List every label: what it is, its runs, and the iterations of all agents of all runs."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("label", "kind"):
        table.add_column(heading, no_wrap=True)
    for heading in ("runs", "iterations x agents"):
        table.add_column(heading, justify="right")
    table.add_column("what it shows")
    for found in labels().values():
        over = f" (over {found.over})" if found.over else ""
        table.add_row(found.name, found.kind, *cost(found), Text(found.caption + over))
    return table


def cost(label: Label) -> tuple[str, str]:
    """Return the runs of a label with the paper's seeds, and their iterations times agents."""
    costs = [_cost(experiment(name)) for name in label.experiments]
    if not costs:
        return DASH, DASH
    return str(sum(runs for runs, _ in costs)), f"{sum(work for _, work in costs):,}"


def _cost(found: Experiment) -> tuple[int, int]:
    each = found.seeds * len(found.methods)
    of_seed = [
        (c.iterations or found.iterations) * (c.agents or found.agents) for c in found.conditions
    ]
    return each * len(found.conditions), each * sum(of_seed)
