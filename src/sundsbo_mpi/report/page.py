"""The page: all that is said of a run, put into the template, as one file without any other."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi import __version__
from sundsbo_mpi.compare.environment import environment
from sundsbo_mpi.config.toml_text import document
from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.metric_names import choose_metric, local_name
from sundsbo_mpi.pictures.figures import axis_label
from sundsbo_mpi.report import algorithm, costs, curves, data, network
from sundsbo_mpi.summary import Lines, facts, metrics, variables
from sundsbo_mpi.summary import costs as spent
from sundsbo_mpi.texttable import duration, number, size

if TYPE_CHECKING:
    from sundsbo_mpi.runfile import RunData

TEMPLATE, STYLE = "page.html.j2", "style.css"
EVALUATIONS = 200
"""Rows of the table of evaluations; of more, some are picked evenly."""
EVENTS = 100


def render(run: RunData) -> str:
    """Return the page as HTML.

    Raises:
        UsageError: matplotlib is missing.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    pages = Environment(
        loader=PackageLoader(__name__, "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (resources.files(__package__) / STYLE).read_text(encoding="utf-8")
    return pages.get_template(TEMPLATE).render(style=Markup(style), **_content(run))


def write(run: RunData, output: Path, *, overwrite: bool) -> None:
    """Write the page of a run to a file.

    Raises:
        UsageError: The file is there and ``overwrite`` is off, it cannot be written, or matplotlib
            is missing.
    """
    page = render(run)
    try:
        with output.open("w" if overwrite else "x", encoding="utf-8") as file:
            file.write(page)
    except FileExistsError:
        raise UsageError(
            f"'{output}' exists already: pass --overwrite to replace it, or choose another name."
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot write '{output}': {reason(error)}; choose another name."
        ) from error


def _content(run: RunData) -> dict[str, Any]:
    about = run.attributes
    told = facts(run)
    mixed = network.network(run)
    return {
        "title": f"{about.get('algorithm', 'run')} on {told['task']}",
        "status": run.status,
        "facts": list(told.items()),
        "headlines": _headlines(run),
        "notes": _notes(run),
        "events": run.events[-EVENTS:],
        "algorithm": algorithm.described(run),
        "network": network.description(run, mixed),
        "drawing": mixed and network.picture(mixed),
        "histograms": data.histograms(run),
        "agents": data.agents_table(run),
        "agent_count": run.agent_count,
        "measured": _measured(run) if run.rows else None,
        "config": document({k: v for k, v in run.config.items() if isinstance(v, dict)}),
        "environment": [*environment(run).items(), *_times(run)],
        "commands": _commands(run),
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC by sundsbo-mpi {__version__}",
    }


def _measured(run: RunData) -> dict[str, Any]:
    """Return what there is only after a first evaluation."""
    return {
        "curves": curves.curves(run),
        "tables": [
            ("Metrics of the averaged model", metrics(run)),
            ("Consensus: how far the agents are apart", variables(run)),
        ],
        "evaluations": _evaluations(run),
        "time": costs.time_split(run),
        "spent": spent(run),
        "bytes": network.bytes_picture(run),
        "bytes_words": network.bytes_in_words(run),
        "busiest": network.busiest(run),
    }


def _headlines(run: RunData) -> list[tuple[str, str]]:
    """Return the few numbers that one looks for first."""
    if not run.rows:
        return []
    found = []
    try:
        name = choose_metric([run], None)
    except UsageError:
        name = ""
    if name:
        found.append((axis_label(name), number(run.curves[name][-1])))
    if local_name(name) in run.curves:
        found.append(("the agents' own models", number(run.curves[local_name(name)][-1])))
    if "y" in run.consensus:
        found.append(("consensus error of y", number(run.consensus["y"][-1])))
    sent = float(run.agents["bytes_payload"][-1].mean())
    return [
        *found,
        ("iterations", number(run.iteration[-1])),
        ("training", duration(float(run.elapsed_s[-1]))),
        ("sent per agent", size(sent)),
    ]


def _notes(run: RunData) -> list[str]:
    try:
        notes = json.loads(str(run.attributes.get("notes", "[]")))
    except ValueError:
        return []
    return list(map(str, notes if isinstance(notes, list) else []))


def _times(run: RunData) -> list[tuple[str, str]]:
    about = run.attributes
    named = {
        "started": about.get("started"),
        "ended": about.get("ended"),
        "HDF5": about.get("hdf5"),
    }
    return [(name, str(value)) for name, value in named.items() if value]


def _evaluations(run: RunData) -> Lines:
    """Return every evaluation, or some where there are many."""
    shown = {name: curve for name, curve in run.curves.items() if np.isfinite(curve).any()}
    picked = np.unique(np.linspace(0, run.rows - 1, min(run.rows, EVALUATIONS)).round().astype(int))
    rows = [
        (
            number(run.iteration[row]),
            f"{run.elapsed_s[row]:.4g}",
            *(number(curve[row]) for curve in shown.values()),
        )
        for row in picked
    ]
    return Lines(("iteration", "seconds", *shown), rows)


def _commands(run: RunData) -> list[tuple[str, str]]:
    file, start = shlex.quote(str(run.path)), f"mpirun -n {run.agent_count} sundsbo-mpi run"
    return [
        (
            "With the run file at hand, which holds the weights too, the same again:",
            f"{start} --like {file}",
        ),
        (
            f"From the configuration below, saved as run.toml. {_besides(run)} With them there:",
            f"{start} --config run.toml",
        ),
        (
            "With the weights from the run file, wherever their own file is:",
            f"{start} --config run.toml --topology {file}",
        ),
    ]


def _besides(run: RunData) -> str:
    """Say what a run needs that the page does not hold."""
    network, sha256 = _table(run, "topology"), run.attributes.get("topology_sha256", "not known")
    lazy = _table(run, "algorithm").get("lazy") is True
    told = "of which (I + W)/2 has" if lazy else "of which 'sundsbo-mpi topology check' tells"
    needed = (
        f"the weights in '{network.get('file', 'a topology file')}', {told} the SHA-256 {sha256}"
    )
    module, colon, _ = str(_table(run, "task").get("name", "")).rpartition(":")
    own = f"; the task's own '{module}'" if colon else ""
    return f"The page does not hold {needed}{own}; and the data."


def _table(run: RunData, name: str) -> Mapping[str, Any]:
    """Return a table of the configuration, empty where the file does not have it."""
    found = run.config.get(name)
    return found if isinstance(found, Mapping) else {}
