"""The method that a configuration asks for, and the weights that it mixes with; needs no MPI."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sundsbo_mpi.algorithms import Horizon, method
from sundsbo_mpi.algorithms.safety import changing_remark, is_safe
from sundsbo_mpi.algorithms.sending import built, require_steady
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.composition import Algorithm
    from sundsbo_mpi.config.resolving import Config
    from sundsbo_mpi.config.tables import TopologyOptions
    from sundsbo_mpi.topology import Mixing
    from sundsbo_mpi.topology.files import Loaded


def network(topology: TopologyOptions) -> Loaded:
    """Read the weights that a configuration names.

    Raises:
        UsageError: it names none, or they cannot be read.
    """
    from sundsbo_mpi.topology import Reading, read_weights

    if not topology.file:
        raise UsageError(
            "no topology: give the weight-matrix file with --topology FILE, or in a file of "
            "settings as file = 'ring.npz' below [topology] ('sundsbo-mpi topology ring --agents N "
            "-o ring.npz' makes one, --help tells more)."
        )
    reading = Reading(topology.format, topology.weights, topology.undirected)
    return read_weights(topology.file, reading)


@cache
def configured_weights(topology: TopologyOptions) -> Mixing:
    """Return the weights that a configuration names, read once in a process that plans many runs.

    Raises:
        UsageError: it names none, or they cannot be read.
    """
    return network(topology).weights


def build_algorithm(config: Config, agents: int) -> tuple[Algorithm, tuple[str, ...]]:
    """Build the configured method; also return what must be said about its options.

    Raises:
        UsageError: they are not what they should be.
    """
    entry = method(config.algorithm["name"])
    options = entry.options(**config.algorithm_options)
    horizon = Horizon(agents, max(1, config.run.iterations))
    return built(entry, options, horizon, seed=config.run.seed), options.remarks()


def suited(config: Config, weights: Mixing) -> tuple[Mixing, tuple[str, ...]]:
    """Return what the method mixes with, W or (I + W)/2, and what must be said about its options.

    Raises:
        UsageError: the method cannot mix with that, or its options are not what they should be.
    """
    mixed = weights.lazy() if config.algorithm["lazy"] else weights
    algorithm, remarks = build_algorithm(config, weights.agents)
    _require_safe(config.algorithm["name"], algorithm, mixed)
    require_steady(algorithm, steady=mixed.steady)
    return mixed, (*remarks, *changing_remark(algorithm, steady=mixed.steady))


def _require_safe(name: str, algorithm: Algorithm, weights: Mixing) -> None:
    if is_safe(algorithm, weights.lambda_min):
        return
    if weights.lambda_min is None:
        raise UsageError(
            f"{name} needs symmetric weights, but {weights.description} is not symmetric: take "
            "another topology, or a method that mixes with any, such as sun-dsbo-gt "
            "('sundsbo-mpi list' tells)."
        )
    raise UsageError(
        f"{name} needs weights whose smallest eigenvalue is above {algorithm.lambda_min:.4f}, but "
        f"that of {weights.name} {'is' if weights.matrices else 'can be'} "
        f"{weights.lambda_min:.4f}: mix with (I + W)/2 by --set algorithm.lazy=true, or take "
        "another topology."
    )
