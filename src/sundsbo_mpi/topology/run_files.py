"""The weights that a run file keeps, which another run can mix with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from scipy.sparse import eye_array

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology.cycle import Cycle
from sundsbo_mpi.topology.redrawn import Redrawn
from sundsbo_mpi.topology.weights import Weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from sundsbo_mpi.runfile import RunData
    from sundsbo_mpi.topology.mixing import Mixing


def weights_of_run(path: str) -> tuple[Mixing, tuple[str, ...]]:
    """Return what the agents of a run mixed with, and the names of its agents.

    Where they mixed with (I + W)/2 by ``algorithm.lazy``, W is returned, which becomes the same
    again, bit for bit, if they shall do so once more.

    Raises:
        UsageError: It is no sound run file.
    """
    from sundsbo_mpi.runfile import read_run

    run = read_run(path)
    name = Path(path).name
    lazy = bool(run.config.get("algorithm", {}).get("lazy"))
    try:
        return _mixing(run, name, lazy=lazy), tuple(json.loads(run.attributes["node_ids"]))
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(
            f"'{path}' has no weights that can be read ({error}): give a topology file."
        ) from error


def _mixing(run: RunData, name: str, *, lazy: bool) -> Mixing:
    if text := run.attributes.get("topology_recipe"):
        recipe = json.loads(text)
        return Redrawn.from_recipe(recipe | {"halvings": recipe["halvings"] - lazy}, name)
    agents = run.agent_count
    stack = [
        run.weights[begin : begin + agents] for begin in range(0, run.weights.shape[0], agents)
    ]
    matrices = tuple(_doubled(matrix) if lazy else matrix for matrix in stack)
    return Weights(matrices[0], name) if len(matrices) == 1 else Cycle(matrices, name)


def _doubled(matrix: csr_array) -> csr_array:
    """Return W from (I + W)/2; where W has no diagonal, what rounding would leave is exactly 0."""
    doubled: csr_array = (2 * matrix - eye_array(matrix.shape[0], format="csr")).tocsr()
    return doubled
