"""Who talks to whom, with which weight, and how many bytes went along every link."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.pictures.figures import draw_table
from sundsbo_mpi.pictures.topology import draw_graph
from sundsbo_mpi.report.inline import inline
from sundsbo_mpi.summary import Lines
from sundsbo_mpi.texttable import number, size
from sundsbo_mpi.topology.redrawn import Redrawn
from sundsbo_mpi.wording import number_of

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from sundsbo_mpi.runfile import RunData

DRAWN_UP_TO = 500
"""Agents; a picture of more tells nothing."""
BUSIEST = 10
"""Edges that are told one by one."""


class Network(NamedTuple):
    """The average of the matrices that were mixed with, (n, n), and how it came to be."""

    mean: csr_array
    edges: NDArray[np.int64]
    symmetric: bool
    matrices: int
    """In a period, or so many draws; none where the file has lost them."""


def network(run: RunData) -> Network | None:
    """Return what the run mixed with; None where its file does not tell any more."""
    stack = _stack(run)
    if not stack or not _sound(run):
        return None
    mean = csr_array(sum(stack[1:], stack[0]) / len(stack))
    symmetric = all(abs(W - W.T).max() == 0 for W in stack)
    return Network(mean, run.edges, symmetric, len(stack))


def picture(found: Network) -> Markup | None:
    """Draw the network, unless it has too many agents."""
    agents = found.mean.shape[0]
    if agents > DRAWN_UP_TO:
        return None
    links = len(found.edges) // (1 + found.symmetric)
    told = (
        f"Drawing of the network: {number_of(agents, 'agent')} and {number_of(links, 'link')}, as "
        "wide as their weights."
    )

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_aspect("equal", adjustable="datalim")
        draw_graph(axes, found.mean, found.edges, symmetric=found.symmetric)

    return inline(draw, (5.0, 5.2), told)


def bytes_picture(run: RunData) -> Markup | None:
    """Draw the payload bytes from every sender to every receiver per iteration."""
    sent = bytes_per_iteration(run)
    if run.agent_count > DRAWN_UP_TO or sent is None or not len(run.edges) or not _sound(run):
        return None
    told = f"Bytes per iteration from sender to receiver, up to {size(float(sent.max()))}."
    return inline(partial(_draw_bytes, run, sent), (4.6, 3.9), told)


def busiest(run: RunData) -> Lines:
    """Return the edges along which most went, since the start of the run."""
    total = run.edge_bytes[-1]
    order = np.argsort(-total, kind="stable")[:BUSIEST]
    rate = bytes_per_iteration(run)
    rows = []
    for edge in order:
        sender, receiver = run.edges[edge].tolist()
        each = "" if rate is None else size(float(rate[edge]), 4)
        rows.append((f"{sender} to {receiver}", size(float(total[edge]), 4), each))
    return Lines(("edge", "bytes", "per iteration"), rows)


def bytes_in_words(run: RunData) -> str:
    """Say how the bytes spread over the edges."""
    total = run.edge_bytes[-1].astype(float)
    if not total.size:
        return "There are no edges."
    least, median, most = (size(float(pick(total)), 4) for pick in (np.min, np.median, np.max))
    return (
        f"{len(total)} directed edges carried {size(float(total.sum()), 4)}: {least} to {most} "
        f"each, median {median}."
    )


def bytes_per_iteration(run: RunData) -> NDArray[np.float64] | None:
    """Return the payload bytes of every edge per iteration, (E,); None before there is any."""
    done = int(run.iteration[-1] - run.iteration[0])
    if done <= 0:
        return None
    rate: NDArray[np.float64] = (run.edge_bytes[-1] - run.edge_bytes[0]) / done
    return rate


def description(run: RunData, found: Network | None) -> list[tuple[str, str]]:
    """Say what the network is, and what decides how fast it mixes."""
    about = run.attributes
    rows = [("topology", str(about.get("topology", "not known"))), ("agents", str(run.agent_count))]
    if found is not None:
        steady = found.matrices == 1
        rows.append(("weights", "fixed" if steady else f"average of {found.matrices} is drawn"))
        degrees = np.bincount(found.edges[:, 0], minlength=run.agent_count)
        least, most = int(degrees.min()), int(degrees.max())
        rows.append(("neighbours", str(least) if least == most else f"{least} to {most}"))
    for name, words in (
        ("rho", "ρ, the disagreement that a round leaves"),
        ("lambda_min", "smallest eigenvalue"),
    ):
        if isinstance(about.get(name), float):
            rows.append((words, number(round(about[name], 9) + 0.0)))
    return [*rows, ("SHA-256 of the weights", str(about.get("topology_sha256", "not known")))]


def _stack(run: RunData) -> list[csr_array]:
    agents = run.agent_count
    text: Any = run.attributes.get("topology_recipe")
    if text:
        try:
            return list(Redrawn.from_recipe(json.loads(text), "").sample)
        except (LookupError, TypeError, ValueError, UsageError):
            return []
    return [run.weights[at : at + agents] for at in range(0, run.weights.shape[0], agents)]


def _sound(run: RunData) -> bool:
    """Say whether the ends of all edges are agents of the run."""
    return bool(((run.edges >= 0) & (run.edges < run.agent_count)).all())


def _draw_bytes(run: RunData, sent: NDArray[np.float64], figure: Figure) -> None:
    from matplotlib.ticker import EngFormatter

    table = np.full((run.agent_count, run.agent_count), np.nan)
    table[run.edges[:, 0], run.edges[:, 1]] = sent
    axes = figure.subplots()
    image = draw_table(axes, table, "receiver", "sender")
    figure.colorbar(image, ax=axes, label="per iteration", format=EngFormatter(unit="B"))
