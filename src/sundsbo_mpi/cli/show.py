"""``sundsbo-mpi show``: what a run did, read from its file."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click
import numpy as np

if TYPE_CHECKING:
    from sundsbo_mpi.runfile import RunData


@click.command()
@click.argument("run", metavar="RUN.h5", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print everything, for other programs.")
def command(run: str, as_json: bool) -> None:
    """Summarise a run: finished, still running, or killed.

    \b
    sundsbo-mpi show run.h5
    sundsbo-mpi show run.h5 --json > run.json

    Of a damaged file, what is whole is shown.
    """  # noqa: D301  (click takes the character \b, not a backslash)
    from sundsbo_mpi.runfile import DamagedError, read_damaged, read_run

    try:
        data = read_run(run)
    except DamagedError:
        data = read_damaged(run)
    if as_json:
        click.echo(json.dumps(document(data), allow_nan=False))
        return

    from sundsbo_mpi.summary import render_summary
    from sundsbo_mpi.texttable import console

    console().print(render_summary(data))


def document(run: RunData) -> dict[str, Any]:
    """Return the run as plain lists, numbers and strings, with None for what is not finite.

    Series are lists with one entry per evaluation, and of one number per agent or edge in each
    entry; of the weights, in which the matrices of a period stand one below the other, the entries
    that are not zero.  Of the final iterates only the shapes are told.
    """
    weights = run.weights.tocoo()
    plain: dict[str, Any] = _plain(
        {
            "path": str(run.path),
            "status": run.status,
            "damage": run.damage,
            "modified": run.modified.isoformat(timespec="seconds"),
            "attributes": run.attributes,
            "config": run.config,
            "events": [dataclasses.asdict(event) for event in run.events],
            "topology": {
                "agents": run.agent_count,
                "edges": run.edges,
                "weights": {"row": weights.row, "column": weights.col, "value": weights.data},
            },
            "agents": run.agents_info,
            "rows": run.rows,
            "planned_rows": run.planned,
            "metrics": _metrics(run),
            "final": run.final,
        }
    )
    return plain


def _metrics(run: RunData) -> dict[str, Any]:
    return {
        "iteration": run.iteration,
        "elapsed_s": run.elapsed_s,
        "wall_s": run.wall_s,
        "task": run.task,
        "consensus": run.consensus,
        "invariant": run.invariant,
        "stationarity": run.stationarity,
        "stationarity_residual": run.stationarity_residual,
        "lipschitz": run.lipschitz,
        "agents": run.agents,
        "edges": {"bytes": run.edge_bytes},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    # JSON has neither NaN nor infinity.
    return None if isinstance(value, float) and not np.isfinite(value) else value
