"""What rank 0 keeps of a run: the run file, and what the person watching is told."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
from scipy.sparse import csr_array, vstack

from sundsbo_mpi.composition.compressors import COMPRESSORS
from sundsbo_mpi.runfile import RunFile, RunPlan
from sundsbo_mpi.versions import versions

if TYPE_CHECKING:
    import numpy as np

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.config import Config
    from sundsbo_mpi.progress import Reporter
    from sundsbo_mpi.runfile import Row
    from sundsbo_mpi.startup import Prepared


def planned_rows(iterations: int, eval_every: int) -> int:
    """Count the evaluations at 0, at every multiple of ``eval_every``, and at K."""
    return 1 + math.ceil(iterations / eval_every)


def other_techniques(config: Config) -> str:
    """Name the variables whose technique is not the method's own, as in "x by ed"."""
    other = {v: config.algorithm.get(v) for v in ("x", "y", "theta")}
    return ", ".join(f"{v} by {technique}" for v, technique in other.items() if technique)


def messages(config: Config) -> str:
    """Say how messages differ from whole vectors in the run's dtype, "" if they do not."""
    own = config.algorithm
    said = ["x not sent"] if own["private"] else []
    if own["wire"]:
        said.append(own["wire"])
    if own["compressor"]:
        options = COMPRESSORS[own["compressor"]].options
        said.append(" ".join([own["compressor"], *(f"{name} {own[name]:g}" for name in options)]))
    return ", ".join(said)


class Recorder:
    """Writes the rows; used on rank 0 alone.

    The file is made when the first row tells the names of the task's metrics.
    """

    def __init__(
        self, prepared: Prepared, agents_info: dict[str, Any], library: str, reporter: Reporter
    ) -> None:
        self._prepared = prepared
        self._agents_info = agents_info
        self._library = library
        self._reporter = reporter
        self._file: RunFile | None = None

    @property
    def path(self) -> Path | None:
        """Where the run file is, once it exists."""
        return self._file.path if self._file else None

    def start(self, row: Row, w: Variables) -> None:
        """Make the run file from the row of iteration 0 and the agent's variables.

        Raises:
            UsageError: it cannot be made.
        """
        config, weights = self._prepared.config, self._prepared.weights
        plan = RunPlan(
            agents=weights.agents,
            rows=planned_rows(config.run.iterations, config.run.eval_every),
            task_metrics=tuple(row.task),
            variables={v: s.numel() for v, s in w.items()},
            edges=weights.edges(),
            weights=vstack([csr_array((0, weights.agents)), *weights.matrices], format="csr"),
            attributes=self._attributes(),
            agents_info=self._agents_info,
            save_final=config.run.save_final,
            dtype=config.run.dtype,
        )
        if config.output.file:
            self._file = RunFile.create(config.output.file, plan, config.output.overwrite)
        else:
            self._file = RunFile.create_default(config.task["name"], config.algorithm["name"], plan)

    def row(self, row: Row) -> None:
        """Append a row and show it.

        Raises:
            UsageError: the task reports other names than before.
        """
        assert self._file is not None
        self._file.append(row)
        self._reporter.row(row)

    def final(self, variable: str, everyone: np.ndarray) -> None:
        """Keep the agents' last iterates of a variable, shape (n, d)."""
        assert self._file is not None
        for agent, s in enumerate(everyone):
            self._file.write_final(variable, agent, s)

    def close(self, status: str) -> None:
        """Say how the run ended and close its file, if there is one."""
        if self._file is not None:
            self._file.finish(status)
            self._file.close()

    def _attributes(self) -> dict[str, str | int | float]:
        config, weights = self._prepared.config, self._prepared.weights
        about: dict[str, str | int | float] = {
            "config": json.dumps(config.as_dict()),
            "task": config.task["name"],
            "dataset": config.task.get("dataset") or "",
            "algorithm": config.algorithm["name"],
            "techniques": other_techniques(config),
            "estimator": config.algorithm.get("estimator", ""),
            "messages": messages(config),
            "iterations": config.run.iterations,
            "seed": config.run.seed,
            "topology": weights.description,
            "topology_sha256": weights.sha256,
            "node_ids": json.dumps(self._prepared.node_ids),
            "rho": weights.rho,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "mpi_library": self._library,
            "transport": self._prepared.transport,
            "oversubscribed": next(filter(None, self._agents_info["oversubscribed"].tolist()), ""),
            "hdf5": h5py.version.hdf5_version,
        }
        if weights.lambda_min is not None:
            about["lambda_min"] = weights.lambda_min
        if weights.recipe:
            about["topology_recipe"] = json.dumps(weights.recipe)
        return about | {f"version_{name}": found for name, found in versions().items()}
