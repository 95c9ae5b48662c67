"""What a run file says of its run: what was asked for, of which program, where."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import h5py

from sundsbo_mpi.composition.compressors import COMPRESSORS
from sundsbo_mpi.config.identity import identity
from sundsbo_mpi.versions import versions

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from sundsbo_mpi.config.resolving import Config
    from sundsbo_mpi.running.preparation import Prepared
    from sundsbo_mpi.topology import Mixing

    Attributes = dict[str, str | int | float]


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


def stacked(weights: Mixing) -> csr_array:
    """Return the matrices of a period one below the other, (T n, n)."""
    from scipy.sparse import csr_array, vstack

    matrices: csr_array = vstack([csr_array((0, weights.agents)), *weights.matrices], format="csr")
    return matrices


def described(weights: Mixing) -> dict[str, Any]:
    """Return what an event says of weights that are new."""
    entries = stacked(weights).tocoo()
    return {
        "topology": weights.description,
        "topology_sha256": weights.sha256,
        "rho": weights.rho,
        "weights": {
            "row": entries.row.tolist(),
            "column": entries.col.tolist(),
            "value": entries.data.tolist(),
        },
    }


def recognised_by(config: Config) -> dict[str, str | int]:
    """Return the attributes by which the run's own file is known, however far it was to go."""
    settings = identity(config.as_dict())
    # A run may go on for longer, and over other weights.
    del settings["run"]["iterations"], settings["topology"]
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return {
        "task": config.task["name"],
        "algorithm": config.algorithm["name"],
        "seed": config.run.seed,
        "settings_sha256": digest,
    }


def attributes(prepared: Prepared, library: str, oversubscribed: str) -> Attributes:
    """Return the attributes of the run's file but for its status."""
    config, weights = prepared.config, prepared.weights
    about: Attributes = {
        **recognised_by(config),
        "config": json.dumps(config.as_dict()),
        "dataset": config.task.get("dataset") or "",
        "techniques": other_techniques(config),
        "estimator": config.algorithm.get("estimator", ""),
        "messages": messages(config),
        "iterations": config.run.iterations,
        "topology": weights.description,
        "topology_sha256": weights.sha256,
        "node_ids": json.dumps(prepared.node_ids),
        "rho": weights.rho,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "mpi_library": library,
        "transport": prepared.transport,
        "oversubscribed": oversubscribed,
        "notes": json.dumps(prepared.notes),
        "hdf5": h5py.version.hdf5_version,
    }
    if weights.lambda_min is not None:
        about["lambda_min"] = weights.lambda_min
    if weights.recipe:
        about["topology_recipe"] = json.dumps(weights.recipe)
    return about | {f"version_{name}": found for name, found in versions().items()}
