"""What must be known about a bench to read its figures: software, hosts, and who ran where."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.bench import core_ranges
from sundsbo_mpi.bench.cases import STAGED
from sundsbo_mpi.comm import world
from sundsbo_mpi.comm.launcher import find_launcher
from sundsbo_mpi.versions import versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sundsbo_mpi.algorithms.messages import Sizes
    from sundsbo_mpi.bench.cases import Ground
    from sundsbo_mpi.topology import Mixing

TUNING = (
    *("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_", "MPIR_CVAR_", "MPICH_", "I_MPI_", "MPI4PY_RC_"),
    *("UCX_", "FI_", "OMP_", "SLURM_CPU_BIND"),
)
"""Beginnings of the variables that choose how MPI moves bytes and where ranks run."""
OF_MPIRUN = {f"OMPI_MCA_{name}" for name in ("PREFIXES", "cpu_type", "initial_wdir", "num_procs")}
"""What Open MPI's mpirun sets on its own, which chooses nothing."""


def about(
    weights: Mixing, repeats: int, payload: Sizes, routes: Mapping[str, str]
) -> dict[str, str | int | float]:
    """Return the attributes of the file; ``routes`` as ``Carried`` returns them."""
    chosen = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(TUNING) and name not in OF_MPIRUN
    }
    facts: dict[str, str | int | float] = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "topology": weights.description,
        "topology_sha256": weights.sha256,
        "repeats": repeats,
        "payload_x": payload.x,
        "payload_y": payload.y,
        "mpi_library": world.library_version(),
        "transports": json.dumps(routes),
        "launcher": find_launcher().name,
        "environment": json.dumps(dict(sorted(chosen.items()))),
    }
    return facts | {f"version_{name}": found for name, found in versions().items()}


def ranks(ground: Ground) -> dict[str, Any] | None:
    """Return, on rank 0, where every rank runs; collective."""
    here = ground.local
    rank = ground.tally.agent
    own = {
        "host": here.hosts[rank],
        "node": here.nodes[rank],
        "device": str(ground.devices.get(STAGED, "cpu")),
        "binding": core_ranges.written(here.cores[here.rank]),
        "node_cores": os.cpu_count() or 0,
    }
    everyone = ground.tally.gather(own)
    if everyone is None:
        return None
    return {name: np.array([facts[name] for facts in everyone]) for name in own}
