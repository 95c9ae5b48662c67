"""What ``sundsbo-mpi watch`` shows of a run: how far it is, how fast, how well, at what cost."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.text import Text

from sundsbo_mpi.following.pace import pace, slowest_agent
from sundsbo_mpi.following.watching import may_go_on
from sundsbo_mpi.metric_names import direction, local_name, without_local
from sundsbo_mpi.pictures.figures import positive
from sundsbo_mpi.running.progress import headline
from sundsbo_mpi.summary import events, facts, listed, status
from sundsbo_mpi.texttable import DASH, duration, number, seconds, size, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sundsbo_mpi.following.pace import Pace
    from sundsbo_mpi.runfile import RunData
    from sundsbo_mpi.runfile.schema import Array

BARS = "▁▂▃▄▅▆▇█"
TREND = 24
"""Characters of a trend."""
LAST_EVENTS = 4
EVEN = 1.05
"""Times the median's work up to which an agent is like the others."""
COLOURS = {"running": "cyan", "finished": "green", "failed": "red", "interrupted": "yellow"}


def view(run: RunData) -> RenderableType:
    """Return the whole picture of a run that goes on or has ended."""
    about, going = facts(run), pace(run)
    top: list[tuple[str, RenderableType]] = [
        ("run", about["run"]),
        ("status", _status(run, going)),
        *((name, about[name]) for name in ("algorithm", "task", "agents", "topology")),
        ("progress", _bar(going)),
        ("", Text(_progress(run, going))),
        *_costs(run),
        *events(run, LAST_EVENTS),
    ]
    parts: list[RenderableType] = [listed(top)]
    if run.rows:
        parts.append(_metrics(run))
    return Group(*parts)


def line(run: RunData) -> str:
    """Say in one line what the last evaluation found, and how long the run will take."""
    going = pace(run)
    of = "" if going.iterations is None else f"/{going.iterations}"
    last = {name: float(curve[-1]) for name, curve in run.task.items()}
    apart = {name: float(curve[-1]) for name, curve in run.consensus.items()}
    return f"iteration {going.done}{of}: {headline(last, apart)}{_estimate(going)}"


def trend(curve: Array, *, logarithmic: bool = False) -> str:
    """Draw a curve with characters: from left to right, the lowest value to the highest."""
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.log(curve) if logarithmic else np.asarray(curve, dtype=float)
    places = np.linspace(0, len(values) - 1, min(len(values), TREND)).round().astype(int)
    picked = values[places]
    known = picked[np.isfinite(picked)]
    if known.size < 2 or known.min() == known.max():
        return ""
    level = (picked - known.min()) / (known.max() - known.min()) * (len(BARS) - 1)
    return "".join(BARS[round(at)] if math.isfinite(at) else " " for at in level)


def _status(run: RunData, going: Pace) -> Text:
    if going.silent:
        usual = "" if math.isnan(going.interval) else f", usually every {duration(going.interval)}"
        return Text(f"{status(run)}{usual}: is the job still there?", style="bold yellow")
    paused = run.status == "interrupted" and may_go_on(run)
    waits = ": it goes on from its checkpoint once its job comes again" if paused else ""
    return Text(f"{status(run)}{waits}", style=f"bold {COLOURS[run.status]}")


def _bar(going: Pace) -> RenderableType:
    return ProgressBar(total=max(going.iterations or 1, 1), completed=going.done, width=40)


def _progress(run: RunData, going: Pace) -> str:
    of = "" if going.iterations is None else f" of {going.iterations}"
    share = f" ({going.done / going.iterations:.0%})" if going.iterations else ""
    return f"iteration {going.done}{of}{share}, {run.rows} of {run.planned} evaluations" + (
        _estimate(going)
    )


def _estimate(going: Pace) -> str:
    if math.isnan(going.seconds):
        return ""
    words = f"; {seconds(going.seconds)} per iteration"
    if math.isnan(going.left) or not going.left:
        return words
    end = datetime.now().astimezone() + timedelta(seconds=going.left)
    when = f"{end:%H:%M}" if going.left < 12 * 3600 else f"{end:%Y-%m-%d %H:%M}"
    return f"{words}, about {duration(round(going.left))} left (until {when})"


def _costs(run: RunData) -> list[tuple[str, RenderableType]]:
    if not run.rows:
        return []
    sent = run.agents["bytes_payload"][-1]
    found: list[tuple[str, RenderableType]] = [
        ("sent", f"{size(float(sent.mean()))} per agent, {size(float(sent.sum()))} in all")
    ]
    if (slowest := slowest_agent(run)) is not None:
        agent, times = slowest
        place = f"agent {agent} on {run.agents_info['host'][agent]}"
        said = f"{place}, with {times:.3g} times the median of own work"
        found.append(("slowest", said if times > EVEN else "no agent stands out"))
    return found


def _metrics(run: RunData) -> RenderableType:
    header = ("metric", "first", "best", "last", "own models", "trend")
    shown = [
        name
        for name in without_local(run.curves)
        if not name.startswith("invariant/") and np.isfinite(run.curves[name]).any()
    ]
    return table(header, [_row(run, name) for name in shown])


def _row(run: RunData, name: str) -> tuple[str, ...]:
    curve = run.curves[name]
    way = 0 if "/" in name else direction(name)  # the agents begin alike, without any error
    best = number(curve[int(np.nanargmax(way * curve))]) if way else DASH
    local = run.curves.get(local_name(name))
    own = "" if local is None else number(local[-1])
    drawn = trend(curve, logarithmic=positive([run], name))
    return (name, number(curve[0]), best, number(curve[-1]), own, drawn)
