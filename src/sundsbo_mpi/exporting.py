"""A run for other tools: its numbers as tables of columns, and its scalars for TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.csvfile import write_columns
from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.runfile.schema import FACTS, LABEL_COUNTS

if TYPE_CHECKING:
    from sundsbo_mpi.runfile import RunData

Table = Mapping[str, Sequence[Any]]
"""Columns of equal length by name."""
SUFFIX = ".sundsbo-mpi"
"""By which an earlier export for TensorBoard is known."""


def tables(run: RunData) -> dict[str, Table]:
    """Return everything that a run file holds but for settings and final iterates, by name.

    ``evaluations`` has a row per evaluation; ``agents`` one per agent; ``agent_costs`` one per
    evaluation and agent, ``edge_bytes`` one per evaluation and directed edge, both cumulative;
    ``weights`` one per entry of the matrices that is not zero; ``events`` one per event.
    """
    times = {name: getattr(run, name).tolist() for name in ("iteration", "elapsed_s", "wall_s")}
    return {
        "evaluations": times | {name: curve.tolist() for name, curve in run.curves.items()},
        "agents": _agents(run),
        "agent_costs": _by_evaluation(run, run.agent_count)
        | {"agent": np.tile(np.arange(run.agent_count), run.rows).tolist()}
        | {name: counted.ravel().tolist() for name, counted in run.agents.items()},
        "edge_bytes": _by_evaluation(run, len(run.edges))
        | {
            end: np.tile(run.edges[:, place], run.rows).tolist()
            for place, end in enumerate(("sender", "receiver"))
        }
        | {"bytes": run.edge_bytes.ravel().tolist()},
        "weights": _weights(run),
        "events": _events(run),
    }


def write_csv(run: RunData, folder: Path) -> None:
    """Write a file of comma-separated values for each of the tables, and ``run.json``."""
    for name, table in tables(run).items():
        write_columns(folder / f"{name}.csv", table)
    _write_settings(run, folder)


def write_parquet(run: RunData, folder: Path) -> None:
    """Write a Parquet file for each of the tables, and ``run.json``.

    Raises:
        UsageError: pyarrow is missing.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise _missing("Parquet", "pyarrow") from None
    for name, table in tables(run).items():
        parquet.write_table(pyarrow.table(dict(table)), folder / f"{name}.parquet")
    _write_settings(run, folder)


def write_tensorboard(run: RunData, folder: Path) -> None:
    """Write the curves, and the mean costs of the agents, as scalars over the iterations.

    Raises:
        UsageError: tensorboardX is missing.
    """
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise _missing("TensorBoard's files", "tensorboardX") from None
    for earlier in folder.glob(f"events.out.tfevents.*{SUFFIX}"):
        earlier.unlink()
    scalars = {name if "/" in name else f"task/{name}": c for name, c in run.curves.items()}
    scalars |= {f"costs/{name}": counted.mean(axis=1) for name, counted in run.agents.items()}
    scalars["costs/elapsed_s"] = run.elapsed_s
    began = _began(run)
    with SummaryWriter(str(folder), filename_suffix=SUFFIX) as writer:
        config = json.dumps(run.config, indent=2)
        writer.add_text("config", f"```json\n{config}\n```", walltime=began)
        for name, curve in scalars.items():
            for k, wall, value in zip(run.iteration, run.wall_s, curve, strict=True):
                if np.isfinite(value):
                    writer.add_scalar(name, float(value), int(k), walltime=began + float(wall))


WRITERS: Mapping[str, Callable[[RunData, Path], None]] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "tensorboard": write_tensorboard,
}


def export(runs: Sequence[RunData], wanted: Mapping[str, Path], *, overwrite: bool) -> None:
    """Write each run to a folder of its own name, if none of those folders has anything in it.

    Args:
        runs: What to write.
        wanted: Where the runs' folders are made, by key of ``WRITERS``.
        overwrite: Whether files of the same names may be replaced.

    Raises:
        UsageError: Two runs have one name, there is something in a folder and ``overwrite`` is off,
            or something cannot be written.
    """
    names = [run.path.stem for run in runs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(
            f"two of the runs are called '{twice}': give them in separate commands, with different "
            "folders."
        )
    for folder in dict.fromkeys(wanted.values()):
        for name in names:
            _check(folder / name, overwrite=overwrite)
    for kind, folder in wanted.items():
        for run, name in zip(runs, names, strict=True):
            try:
                (folder / name).mkdir(parents=True, exist_ok=True)
                WRITERS[kind](run, folder / name)
            except OSError as error:
                raise UsageError(
                    f"cannot write to '{folder / name}': {reason(error)}; choose another folder."
                ) from error


def _check(place: Path, *, overwrite: bool) -> None:
    if place.is_dir() and any(place.iterdir()) and not overwrite:
        raise UsageError(
            f"'{place}' is there already: pass --overwrite to replace what is in it, or choose "
            "another folder."
        )


def _by_evaluation(run: RunData, each: int) -> dict[str, Sequence[Any]]:
    return {"iteration": np.repeat(run.iteration, each).tolist()}


def _agents(run: RunData) -> Table:
    info = run.agents_info
    columns: dict[str, Sequence[Any]] = {"agent": range(run.agent_count)}
    columns |= {name: info[name].tolist() for name in FACTS}
    for name in LABEL_COUNTS:
        if name in info:
            part = name.removesuffix("_counts")
            columns |= {f"{part}_{c}": own.tolist() for c, own in enumerate(info[name].T)}
    return columns


def _weights(run: RunData) -> Table:
    entries = run.weights.tocoo()
    return {
        "matrix": (entries.row // run.agent_count).tolist(),
        "row": (entries.row % run.agent_count).tolist(),
        "column": entries.col.tolist(),
        "weight": entries.data.tolist(),
    }


def _events(run: RunData) -> Table:
    names = ("iteration", "time", "kind", "sentence")
    columns = {name: [getattr(event, name) for event in run.events] for name in names}
    return columns | {"details": [json.dumps(dict(event.details)) for event in run.events]}


def _write_settings(run: RunData, folder: Path) -> None:
    told = {"status": run.status, "attributes": dict(run.attributes), "config": dict(run.config)}
    (folder / "run.json").write_text(json.dumps(told, indent=2), encoding="utf-8")


def _began(run: RunData) -> float:
    """Return when the run began, in seconds since 1970, as TensorBoard counts."""
    try:
        return datetime.fromisoformat(str(run.attributes["started"])).timestamp()
    except (KeyError, ValueError):
        return run.modified.timestamp() - (float(run.wall_s[-1]) if run.rows else 0.0)


def _missing(what: str, package: str) -> UsageError:
    return UsageError(
        f"writing {what} needs {package}, which is not installed: run pip install "
        "'sundsbo-mpi[export]'."
    )
