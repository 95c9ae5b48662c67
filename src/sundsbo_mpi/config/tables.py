"""The tables ``run``, ``topology`` and ``output`` of a configuration, each with its checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sundsbo_mpi.comm.transports import DEFAULT, ONE_BY_ONE, TRANSPORTS
from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.options import require_integer, require_number

TABLES = ("run", "topology", "task", "algorithm", "output")
"""All tables of a configuration; the task and the method have options of their own in theirs."""
DTYPES = ("float32", "float64")
OVERLAPS = ("auto", "always", "never")
"""When a thread keeps messages moving while the gradient is computed; "auto" where a neighbour is
on another host: within one, messages are copied by whoever waits for them."""
ON_NAN = ("stop", "skip")
"""Stop all agents, or undo the iteration on all of them and go on with the next batch."""
ON_FAILURE = ("abort", "continue")
"""End the job, or let the other agents go on, where the MPI library can."""
NOT_SHARED = ("file", "overwrite", "trace", "checkpoint")
"""Settings of the table ``output`` that name, or give away, the files of one run alone."""
LARGEST_INTEGER = 2**53
"""Larger ones are not exact everywhere."""


@dataclass(frozen=True)
class RunOptions:
    """The table ``run``."""

    iterations: int = 500
    seed: int = 0
    eval_every: int = 50
    dtype: str = "float32"
    device: str = "auto"
    stationarity: bool = False
    save_final: bool = False
    max_walltime: float = 0.0
    """Seconds after which all agents stop together; 0 for no limit."""
    overlap: str = "auto"
    """Whether a thread keeps messages moving during the gradient, see ``OVERLAPS``."""
    transport: str = DEFAULT
    """What messages travel over, see ``comm.transports.TRANSPORTS``."""
    gpu_direct: bool = False
    """Whether MPI is handed the buffers of GPUs, which few libraries can take."""
    on_nan: str = "stop"
    """What follows numbers that are not finite, see ``ON_NAN``."""
    on_failure: str = "abort"
    """What follows the loss of an agent, see ``ON_FAILURE``."""
    comm_timeout: float = 1800.0
    """Seconds after which an iteration that does not end is taken for a hang; 0 for never."""

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        for name, least in (("iterations", 0), ("seed", 0), ("eval_every", 1)):
            require_integer(f"run.{name}", getattr(self, name), least, LARGEST_INTEGER)
        require_number("run.max_walltime", self.max_walltime, 0.0)
        require_number("run.comm_timeout", self.comm_timeout, 0.0)
        if self.dtype not in DTYPES:
            raise unknown("dtype", self.dtype, DTYPES)
        if self.overlap not in OVERLAPS:
            raise unknown("overlap", self.overlap, OVERLAPS)
        if self.on_nan not in ON_NAN:
            raise unknown("run.on_nan", self.on_nan, ON_NAN)
        if self.on_failure not in ON_FAILURE:
            raise unknown("run.on_failure", self.on_failure, ON_FAILURE)
        if self.transport not in TRANSPORTS:
            raise unknown("transport", self.transport, TRANSPORTS)
        if self.gpu_direct and self.transport not in (DEFAULT, ONE_BY_ONE):
            raise UsageError(
                f"run.gpu_direct with transport {self.transport}: GPU buffers are sent one by one; "
                f"use --transport {ONE_BY_ONE}, or leave gpu_direct out."
            )


@dataclass(frozen=True)
class TopologyOptions:
    """The table ``topology``: the weight-matrix file and how to read it."""

    file: str = ""
    format: str | None = None
    weights: str | None = None
    undirected: bool = False
    place: bool = False
    """Whether agents are moved between the ranks so that fewer links cross nodes."""


@dataclass(frozen=True)
class OutputOptions:
    """The table ``output``; without a file, a unique name is made up."""

    file: str | None = None
    overwrite: bool = False
    trace: str | None = None
    """Where a timeline of all agents is written, if anywhere."""
    checkpoint: str | None = None
    """The folder of the checkpoints, if any are kept."""
    checkpoint_every: int = 0
    """Iterations from one checkpoint to the next; 0 to go by the time alone."""
    checkpoint_seconds: float = 600.0
    """Seconds from one checkpoint to the next; 0 to go by the iterations alone."""

    def __post_init__(self) -> None:
        """Refuse values outside their range, and one file for two purposes."""
        require_integer("output.checkpoint_every", self.checkpoint_every, 0, LARGEST_INTEGER)
        require_number("output.checkpoint_seconds", self.checkpoint_seconds, 0.0)
        for name in ("file", "trace", "checkpoint"):
            if getattr(self, name) == "":
                raise UsageError(f"output.{name} is empty: name it, or leave it out.")
        if self.file and self.trace and Path(self.file) == Path(self.trace):
            raise UsageError(
                f"output.file and output.trace are both '{self.file}': name two different files."
            )
