"""What a run that goes on without lost agents cannot do besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sundsbo_mpi.comm.survivors import fault_tolerance
from sundsbo_mpi.comm.transports import DEFAULT, ONE_BY_ONE
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.config.resolving import Config


def require_endurable(config: Config) -> None:
    """Refuse ``run.on_failure`` = "continue" where MPI or another setting stands against it.

    Raises:
        UsageError: one does.
    """
    run = config.run
    if run.on_failure != "continue":
        return
    if reason := fault_tolerance():
        raise UsageError(f"--on-failure continue cannot be: {reason}, or pass --on-failure abort.")
    against = {
        f"--transport {run.transport}": run.transport not in (DEFAULT, ONE_BY_ONE),
        "--overlap always": run.overlap == "always",
        "--gpu-direct": run.gpu_direct,
        "--trace": config.output.trace is not None,
        "algorithm.private": bool(config.algorithm["private"]),
    }
    for setting, given in against.items():
        if given:
            raise UsageError(
                f"--on-failure continue with {setting}, which needs all agents to the end: leave "
                "one of them out."
            )
