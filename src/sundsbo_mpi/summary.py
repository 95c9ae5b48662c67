"""What a run did, as a table for people: at the end of a run and for ``sundsbo-mpi show``."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sundsbo_mpi.metric_names import direction
from sundsbo_mpi.texttable import DASH, duration, number, size, table
from sundsbo_mpi.topology import digits
from sundsbo_mpi.versions import library
from sundsbo_mpi.wording import resuming

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from sundsbo_mpi.runfile import RunData

EVENTS = 10
"""How many events are told, the last ones."""


class Lines(NamedTuple):
    """A table: the names of its columns, and its rows of texts."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def render_summary(run: RunData) -> RenderableType:
    """Say what ran and how it ended, what it reached, and what it cost the agents.

    Every number comes from the rows that count, so that a running or killed run has a summary too.
    """
    parts: list[RenderableType] = [listed([*facts(run).items(), *events(run), *_advice(run)])]
    if run.rows:
        parts += [table(*lines) for lines in (metrics(run), variables(run), costs(run))]
    else:
        parts.append(Text("no evaluation has been written yet"))
    return Group(*parts)


def facts(run: RunData) -> dict[str, str]:
    """Return what ran where, and how far it has come, by name."""
    about = run.attributes
    return {
        "run": str(run.path),
        "status": status(run),
        "task": _join(about, "task", "dataset"),
        "algorithm": _join(about, "algorithm", "techniques", "estimator", "messages"),
        "agents": f"{run.agent_count} on {_hosts(run)}",
        "topology": _topology(run),
        "iterations": _iterations(run),
        "seed": str(about.get("seed", DASH)),
        "time": _time(run),
        "MPI": library(str(about.get("mpi_library", DASH))),
    }


def listed(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Return names and what is to be said of each, one below the other."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in rows:
        # Text, not str: names of files and topologies may hold rich's square brackets.
        grid.add_row(name, Text(value) if isinstance(value, str) else value)
    return grid


def status(run: RunData) -> str:
    """Say how the run ended, or when its file was last written."""
    if run.status != "running":
        return f"{run.status} {run.attributes['ended']}"
    return f"running, or killed (last written {duration(age(run))} ago)"


def age(run: RunData) -> float:
    """Return the seconds since the file was last written; 0 where its clock is ahead of ours."""
    return max((datetime.now(UTC) - run.modified).total_seconds(), 0.0)


def events(run: RunData, most: int = EVENTS) -> list[tuple[str, str]]:
    """Return the last events as rows of ``listed``."""
    shown = run.events[-most:]
    words = [f"iteration {e.iteration}, {e.time}: {e.sentence}" for e in shown]
    if len(run.events) > most:
        words.insert(0, f"{len(run.events) - most} earlier ones")
    return [("" if place else "events", said) for place, said in enumerate(words)]


def _advice(run: RunData) -> list[tuple[str, str]]:
    """Say what can be done about a run that is damaged or did not finish."""
    rows = []
    if run.damage:
        file = shlex.quote(str(run.path))
        rows += [("damaged", f"{run.damage}; 'sundsbo-mpi repair {file}' writes that down")]
    folder = _setting(run, "output", "checkpoint")
    if folder and run.status != "finished":
        after = "if it was killed: " if run.status == "running" else ""
        lost = [e.details.get("lost") for e in run.events if e.kind == "agents lost"]
        left = run.agent_count - sum(len(agents) for agents in lost if isinstance(agents, list))
        enduring = _setting(run, "run", "on_failure") == "continue"
        rows += [("to go on", after + resuming(str(folder), left, enduring=enduring))]
    return rows


def _setting(run: RunData, table: str, name: str) -> Any:
    settings = run.config.get(table)
    return settings.get(name) if isinstance(settings, dict) else None


def _join(about: Any, *names: str) -> str:
    return ", ".join(str(about[name]) for name in names if about.get(name)) or DASH


def _hosts(run: RunData) -> str:
    hosts = list(dict.fromkeys(run.agents_info["host"].tolist()))
    devices = list(dict.fromkeys(run.agents_info["device"].tolist()))
    place = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"
    return f"{place}, {', '.join(devices)}"


def _topology(run: RunData) -> str:
    words = [str(run.attributes.get("topology", f"{len(run.edges)} directed edges"))]
    if (rho := run.attributes.get("rho")) is not None:
        words.append(f"rho {rho:.{digits(rho, 4)}g}")
    return ", ".join(words)


def _iterations(run: RunData) -> str:
    planned = run.attributes.get("iterations")
    done = run.iteration[-1] if run.rows else 0
    of = "" if planned is None else f" of {planned}"
    return f"{done}{of} ({run.rows} of {run.planned} evaluations)"


def _time(run: RunData) -> str:
    if not run.rows:
        return DASH
    return f"{duration(run.elapsed_s[-1])} of training, {duration(run.wall_s[-1])} in all"


def metrics(run: RunData) -> Lines:
    """Return what the metrics were at first, at best and at last."""
    rows = []
    for name, curve in run.curves.items():
        if "/" in name or np.isnan(curve).all():
            continue
        best = at = DASH
        if direction(name):
            where = int(np.nanargmax(direction(name) * curve))
            best, at = number(curve[where]), str(run.iteration[where])
        rows.append((name, number(curve[0]), best, at, number(curve[-1])))
    return Lines(("metric", "first", "best", "at", "last"), rows)


def variables(run: RunData) -> Lines:
    """Return how far the agents were apart in every variable."""
    rows = [
        (
            *(name, number(curve[0]), _largest(curve), number(curve[-1])),
            _largest(run.invariant[name]),
        )
        for name, curve in run.consensus.items()
    ]
    of_consensus = (f"consensus, {which}" for which in ("first", "largest", "last"))
    return Lines(("variable", *of_consensus, "invariant, largest"), rows)


def costs(run: RunData) -> Lines:
    """Return what the agents have spent since the start of the run."""
    rows = []
    for name, counted in run.agents.items():
        last = counted[-1]
        show = partial(size, digits=4) if name.startswith("bytes") else number
        show = number if np.isnan(last).any() else show  # of a damaged file
        shown = [show(pick(last)) for pick in (np.min, np.median, np.max)]
        total = DASH if name.startswith("rounds") else show(last.sum())
        rows.append((name.replace("_", " "), *shown, total))
    return Lines(("per agent", "min", "median", "max", "all agents"), rows)


def _largest(curve: Iterable[float]) -> str:
    known = [value for value in curve if not np.isnan(value)]
    return number(max(known)) if known else DASH
