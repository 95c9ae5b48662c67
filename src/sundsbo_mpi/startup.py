"""From a request to a running agent: every stage succeeds on all ranks or fails on all of them.

All functions are collective and raise ``AgreedError``.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sundsbo_mpi.agent import Agent
from sundsbo_mpi.agreement import agree, jointly, on_root
from sundsbo_mpi.algorithms import Horizon, method
from sundsbo_mpi.algorithms.safety import changing_remark, is_safe
from sundsbo_mpi.algorithms.sending import require_steady, sending
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm import world
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.progress import Progress, require_overlap, threads_may_take_turns
from sundsbo_mpi.comm.seating import seat
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports.network import Network, Wires
from sundsbo_mpi.comm.transports.staging import layer_of
from sundsbo_mpi.config import Config, Request, resolve
from sundsbo_mpi.errors import DataNote, UsageError
from sundsbo_mpi.heap import keep_freed_memory
from sundsbo_mpi.inspection import construct, inspect_private, inspect_task
from sundsbo_mpi.job import agree_on
from sundsbo_mpi.runfile import default_path
from sundsbo_mpi.runfile.naming import check_writable
from sundsbo_mpi.tasks import load_task
from sundsbo_mpi.topology import Mixing, Reading, read_weights
from sundsbo_mpi.tracing import check_trace

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.composition import Algorithm
    from sundsbo_mpi.control import Control
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class Prepared:
    """What rank 0 found out before anything was built; broadcast to all."""

    config: Config
    node_ids: tuple[str, ...]
    """The topology file's name of every agent."""
    weights: Mixing
    """What the run mixes with: the file's matrix or matrices W, or (I + W)/2."""
    notes: tuple[str, ...]
    transport: str = ""
    """What the messages travel over, once the agents are connected."""

    def connected(self, network: Network) -> Prepared:
        """Return the same with what is known of the links."""
        notes = (*self.notes, f"transport: {network.description}", *network.notes)
        return replace(self, notes=notes, transport=network.description)


@dataclass(frozen=True)
class Site:
    """Where a rank runs."""

    local: world.Local
    device: torch.device
    threads: int
    notes: tuple[str, ...]


def prepare(request: Request, comm: MPI.Intracomm) -> tuple[Prepared, Any, MPI.Intracomm]:
    """Check everything that can be checked without building anything, and take one's seat.

    Returns what rank 0 prepared, this agent's shard where the task divides its data, and the
    communicator whose rank i is agent i.
    """
    tally = Tally(comm)
    agree_on(tally, request)
    shards: list[Any] = []

    def on_rank_0() -> Prepared:
        prepared = _read(request, tally.agents)
        found, notes = _load_shards(prepared.config, tally.agents)
        shards.extend(found)
        return replace(prepared, notes=(*prepared.notes, *notes))

    prepared = on_root(tally, on_rank_0)
    divided = tally.tell(bool(shards))
    jointly(tally, lambda: load_task(prepared.config.task["name"]))
    agree(tally, _source(prepared.config), "use the same file on all nodes")
    comm, said = seat(
        comm, prepared.weights, world.local(comm).hosts, place=prepared.config.topology.place
    )
    prepared = replace(prepared, notes=(*prepared.notes, *([said] if said else [])))
    return prepared, Tally(comm).deal(shards or None) if divided else None, comm


def _read(request: Request, agents: int) -> Prepared:
    config = resolve(request)
    if not config.topology.file:
        raise UsageError(
            "no topology: give the weight-matrix file with --topology FILE "
            "('sundsbo-mpi topology ring --agents N -o ring.npz' makes one, --help tells more)."
        )
    reading = Reading(config.topology.format, config.topology.weights, config.topology.undirected)
    loaded = read_weights(config.topology.file, reading)
    if loaded.weights.agents != agents:
        raise UsageError(
            f"{config.topology.file} has {loaded.weights.agents} agents but {agents} ranks were "
            f"started: use mpirun -n {loaded.weights.agents}, or another topology file."
        )
    weights = loaded.weights.lazy() if config.algorithm["lazy"] else loaded.weights
    algorithm, remarks = build_algorithm(config, agents)
    _require_safe(config.algorithm["name"], algorithm, weights)
    require_steady(algorithm, steady=weights.steady)
    output = config.output.file or default_path(
        config.task["name"], config.algorithm["name"], datetime.now().astimezone()
    )
    check_writable(Path(output), config.output.overwrite)
    check_trace(config.output.trace, config.output.overwrite)
    remarks += changing_remark(algorithm, steady=weights.steady)
    return Prepared(config, loaded.node_ids, weights, (*loaded.notes, *remarks))


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


def build_algorithm(config: Config, agents: int) -> tuple[Algorithm, tuple[str, ...]]:
    """Build the configured method; also return what must be said about its options."""
    entry = method(config.algorithm["name"])
    options = entry.options(**config.algorithm_options)
    horizon = Horizon(agents, max(1, config.run.iterations))
    algorithm = entry.build(options, horizon)
    sent = sending(algorithm, options, agents=agents, seed=config.run.seed)
    return sent, options.remarks()


def _load_shards(config: Config, agents: int) -> tuple[list[Any], list[str]]:
    """Return the agents' shards, none where the task needs none, and what is odd about the data."""
    divide = getattr(load_task(config.task["name"]), "shards", None)
    if divide is None:
        return [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataNote)
        shards = list(divide(agents=agents, seed=config.run.seed, **config.task_options))
    for other in caught:
        if not issubclass(other.category, DataNote):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    notes = [str(note.message) for note in caught if issubclass(note.category, DataNote)]
    return shards, list(dict.fromkeys(notes))


def _source(config: Config) -> dict[str, str]:
    """The file that defines the task, which need not be the same on all nodes."""
    file = sys.modules[load_task(config.task["name"]).__module__].__file__
    content = Path(file).read_bytes() if file else b""
    return {"the task's file (SHA-256)": hashlib.sha256(content).hexdigest()}


def find_site(config: Config, comm: MPI.Intracomm, tally: Tally) -> Site:
    """Choose the device and the number of threads of this rank."""
    here = world.local(comm)
    requested = config.run.device
    if requested == "auto" and not hasattr(load_task(config.task["name"]), "to"):
        requested = "cpu"
    device, notes = jointly(tally, lambda: world.choose_device(requested, here))
    crowd = world.oversubscription(here)
    return Site(here, device, world.cap_threads(here), (*notes, *([crowd.note] if crowd else [])))


def build_task(config: Config, tally: Tally, device: torch.device, shard: Any) -> Task:
    """Build this agent's problem and check that it is the same problem everywhere."""
    dtype = getattr(torch, config.run.dtype)
    torch.set_default_dtype(dtype)

    def build() -> Task:
        given = {"agent": tally.agent, "agents": tally.agents, "seed": config.run.seed}
        divided = {} if shard is None else {"shard": shard}
        task = construct(load_task(config.task["name"]), given | divided | config.task_options)
        if hasattr(task, "to"):
            task.to(device, dtype)
        elif device.type != "cpu":
            raise UsageError(
                f"task {config.task['name']} has no method to(device, dtype), so it cannot run on "
                "a GPU: add one, or use --device cpu."
            )
        return task

    task = jointly(tally, build)
    inspect_task(tally, task, device, dtype)
    if config.algorithm["private"]:
        inspect_private(tally, task)
    return task


def build_agent(
    prepared: Prepared, task: Task, site: Site, comm: MPI.Intracomm, control: Control
) -> Agent:
    """Connect the agent with its neighbours; it must be closed in the end."""
    config, tally = prepared.config, Tally(comm)
    jointly(tally, lambda: require_overlap(config.run.overlap))
    clock = Clock(torch.cuda.synchronize if site.device.type == "cuda" else None)
    wires = _wires(config, task, site.device)
    gossip = jointly(tally, lambda: Gossip(comm, prepared.weights, clock, wires))
    keep_freed_memory()
    return Agent(
        task=task,
        algorithm=build_algorithm(config, tally.agents)[0],
        gossip=gossip,
        tally=tally,
        control=control,
        clock=clock,
        iterations=config.run.iterations,
        eval_every=config.run.eval_every,
        progress=_progress(config.run.overlap, gossip, site.local, tally.agent),
    )


def _wires(config: Config, task: Task, device: torch.device) -> Wires:
    vectors = 2 * (task.sizes["x"] + 2 * task.sizes["y"])  # x, y, theta with their trackers
    size = vectors * getattr(torch, config.run.dtype).itemsize
    return Wires(config.run.transport, size, layer_of(device), config.run.gpu_direct)


def _progress(overlap: str, gossip: Gossip, local: world.Local, agent: int) -> Progress | None:
    far = any(local.hosts[j] != local.hosts[agent] for j in gossip.neighbours)
    wanted = overlap == "always" or (overlap == "auto" and far)
    return Progress(gossip.progress) if wanted and threads_may_take_turns() else None
