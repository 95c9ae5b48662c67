"""From a request to a running agent: every stage succeeds on all ranks or fails on all of them."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sundsbo_mpi.agent import Agent
from sundsbo_mpi.agreement import agree, jointly, on_root
from sundsbo_mpi.algorithms import MARGIN, Horizon, method
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm import world
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.config import Config, Request, resolve
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile.naming import check_writable
from sundsbo_mpi.tasks import load_task
from sundsbo_mpi.topology import Loaded, Reading, Weights, read_weights

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.composition import Algorithm
    from sundsbo_mpi.tasks.base import Task

PACKAGES = ("sundsbo-mpi", "torch", "numpy", "mpi4py", "h5py")


@dataclass(frozen=True)
class Prepared:
    """What rank 0 found out before anything was built; broadcast to all."""

    config: Config
    topology: Loaded
    weights: Weights
    """The matrix that the run mixes with: the file's W, or (I + W)/2."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Placement:
    """Where a rank runs."""

    local: world.Local
    device: torch.device
    threads: int
    notes: tuple[str, ...]


def prepare(request: Request, tally: Tally) -> tuple[Prepared, dict[str, Any] | None]:
    """Check everything that can be checked without building anything; collective.

    Returns what rank 0 prepared, and this agent's shard where the task divides its data.

    Raises:
        AgreedError: the request cannot be met.
    """
    versions = {name: version(name) for name in PACKAGES}
    versions |= {"python": platform.python_version(), "the MPI library": world.library_version()}
    agree(tally, versions, "use the same environment on all nodes")
    agree(tally, {"the command line": repr(request)}, "start all ranks with the same arguments")
    shards: list[Any] = []

    def on_rank_0() -> Prepared:
        prepared = _read(request, tally.agents)
        shards.extend(_load_shards(prepared.config, tally.agents))
        return prepared

    prepared = on_root(tally, on_rank_0)
    divided = tally.tell(bool(shards))
    return prepared, tally.deal(shards or None) if divided else None


def _read(request: Request, agents: int) -> Prepared:
    config = resolve(request)
    if not config.topology.file:
        raise UsageError(
            "no topology: give the weight-matrix file with --topology FILE; "
            "'sundsbo-mpi topology ring --agents N -o ring.npz' makes one."
        )
    reading = Reading(config.topology.format, config.topology.weights, config.topology.undirected)
    loaded = read_weights(config.topology.file, reading)
    if loaded.weights.agents != agents:
        raise UsageError(
            f"{config.topology.file} has {loaded.weights.agents} agents but {agents} ranks were "
            f"started: use mpirun -n {loaded.weights.agents}, or another topology file."
        )
    weights = loaded.weights.lazy() if config.algorithm.get("lazy") else loaded.weights
    algorithm, remarks = build_algorithm(config, agents)
    if weights.lambda_min <= algorithm.lambda_min + MARGIN:
        raise UsageError(
            f"{config.algorithm['name']} needs weights whose smallest eigenvalue is above "
            f"{algorithm.lambda_min:.4f}, but that of {weights.name} is {weights.lambda_min:.4f}: "
            "mix with (I + W)/2 by --set algorithm.lazy=true, or take another topology."
        )
    if config.output.file:
        check_writable(Path(config.output.file), config.output.overwrite)
    return Prepared(config, loaded, weights, (*loaded.notes, *remarks))


def build_algorithm(config: Config, agents: int) -> tuple[Algorithm, tuple[str, ...]]:
    """Build the configured method; also return what must be said about its options."""
    entry = method(config.algorithm["name"])
    options = entry.options(**{k: v for k, v in config.algorithm.items() if k != "name"})
    horizon = Horizon(agents, max(1, config.run.iterations))
    return entry.build(options, horizon), options.remarks()


def _task_options(config: Config) -> dict[str, Any]:
    return {k: v for k, v in config.task.items() if k != "name"}


def _load_shards(config: Config, agents: int) -> list[Any]:
    divide = getattr(load_task(config.task["name"]), "shards", None)
    if divide is None:
        return []
    return list(divide(agents=agents, seed=config.run.seed, **_task_options(config)))


def place(config: Config, tally: Tally, comm: MPI.Intracomm) -> Placement:
    """Choose the device and the number of threads of this rank; collective."""
    here = world.local(comm)
    requested = config.run.device
    if requested == "auto" and not hasattr(load_task(config.task["name"]), "to"):
        requested = "cpu"
    device, notes = jointly(tally, lambda: world.choose_device(requested, here))
    threads = world.cap_threads(here)
    crowd = [] if (crowded := world.oversubscription(here)) is None else [crowded]
    return Placement(here, device, threads, (*notes, *crowd))


def build_task(config: Config, tally: Tally, device: torch.device, shard: Any) -> Task:
    """Build this agent's problem and check that it is the same problem everywhere; collective.

    Raises:
        AgreedError: the task refuses its options, or sizes or starts differ between agents.
    """
    dtype = getattr(torch, config.run.dtype)
    torch.set_default_dtype(dtype)

    def build() -> Task:
        task_class: Callable[..., Task] = load_task(config.task["name"])
        given = {} if shard is None else {"shard": shard}
        task = task_class(
            agent=tally.agent,
            agents=tally.agents,
            seed=config.run.seed,
            **given,
            **_task_options(config),
        )
        if hasattr(task, "to"):
            task.to(device, dtype)
        elif device.type != "cpu":
            raise UsageError(
                f"task {config.task['name']} has no method to(device, dtype), so it cannot run on "
                "a GPU: add one, or use --device cpu."
            )
        return task

    task = jointly(tally, build)
    start = jointly(tally, lambda: _checked_start(task, dtype))
    facts = {"the task's sizes": dict(task.sizes), "the task's start (SHA-256)": start}
    agree(tally, facts, "sizes and start() must be equal on all agents")
    return task


def _checked_start(task: Task, dtype: torch.dtype) -> str:
    digest = hashlib.sha256()
    for name, v in zip(("x", "y"), task.start(), strict=True):
        if v.shape != (task.sizes[name],) or v.dtype != dtype:
            raise UsageError(
                f"the task starts with {name} of shape {tuple(v.shape)} and {v.dtype}: expected "
                f"({task.sizes[name]},) and {dtype}."
            )
        digest.update(v.numpy(force=True).tobytes())
    return digest.hexdigest()


def build_agent(
    prepared: Prepared, task: Task, device: torch.device, comm: MPI.Intracomm, tally: Tally
) -> Agent:
    """Connect the agent with its neighbours; collective.  ``close`` its gossip in the end."""
    config = prepared.config
    agree(
        tally,
        {
            "the configuration": json.dumps(config.as_dict(), sort_keys=True),
            "the topology (SHA-256)": prepared.weights.sha256,
        },
        "this is a fault of sundsbo-mpi, please report it",
    )
    clock = Clock(torch.cuda.synchronize if device.type == "cuda" else None)
    return Agent(
        task=task,
        algorithm=build_algorithm(config, tally.agents)[0],
        gossip=Gossip(comm, prepared.weights, clock),
        tally=tally,
        clock=clock,
        iterations=config.run.iterations,
        eval_every=config.run.eval_every,
    )


def remote_neighbours(agent: Agent, local: world.Local) -> np.ndarray:
    """Say of each neighbour of the agent whether it is on another host."""
    here = local.hosts[agent.tally.agent]
    return np.array([local.hosts[j] != here for j in agent.gossip.neighbours], dtype=bool)
