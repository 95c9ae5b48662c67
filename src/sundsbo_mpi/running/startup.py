"""From what was prepared to a running agent: every stage succeeds on all ranks or on none.

What finds or builds something is collective and raises ``AgreedError``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sundsbo_mpi.agent import Agent
from sundsbo_mpi.algorithms.messages import Sizes, message_bytes
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.comm import node
from sundsbo_mpi.comm.agreement import jointly
from sundsbo_mpi.comm.alignment import align
from sundsbo_mpi.comm.gossip import Gossip
from sundsbo_mpi.comm.progress import Progress, require_overlap, threads_may_take_turns
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.transports.network import Wires
from sundsbo_mpi.comm.transports.staging import layer_of
from sundsbo_mpi.config.methods import build_algorithm
from sundsbo_mpi.config.resolving import Config
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.heap import prepare_heap
from sundsbo_mpi.running.guarding import call_alone, guarded
from sundsbo_mpi.running.inspection import construct, inspect_private, inspect_task
from sundsbo_mpi.running.second_derivatives import inspect_twice
from sundsbo_mpi.tasks import load_task
from sundsbo_mpi.tracing import TraceFile, Tracer

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.comm.survivors import Survivors
    from sundsbo_mpi.composition import Algorithm
    from sundsbo_mpi.config.tables import OutputOptions
    from sundsbo_mpi.ranks.control import Control
    from sundsbo_mpi.running.preparation import Prepared
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class Site:
    """Where a rank runs."""

    local: node.Local
    device: torch.device
    threads: int
    clock: Clock
    """Adds up the rank's seconds, and waits for its GPU if it has one."""


def find_site(
    config: Config, comm: MPI.Intracomm, tally: Tally, threads: int | None = None
) -> tuple[Site, list[str]]:
    """Choose the device and the number of threads of this rank, unless that is given; collective.

    Returns it with what the user must know, the same on all ranks.
    """
    here = node.local(comm)
    requested = config.run.device
    if requested == "auto" and not hasattr(load_task(config.task["name"]), "to"):
        requested = "cpu"
    device, notes = jointly(tally, lambda: node.choose_device(requested, here))
    threads = node.cap_threads(here, threads)
    clock = Clock(torch.cuda.synchronize if device.type == "cuda" else None)
    return Site(here, device, threads, clock), [*notes, *node.crowd_notes(here)]


def build_task(prepared: Prepared, tally: Tally, device: torch.device, shard: Any) -> Task:
    """Build this agent's problem and check that it is the same problem everywhere."""
    config, about = prepared.config, prepared.about
    dtype = getattr(torch, config.run.dtype)
    torch.set_default_dtype(dtype)

    def build() -> Task:
        number = about.numbers[tally.agent]
        given = {"agent": number, "agents": about.agents, "seed": config.run.seed}
        divided = {} if shard is None else {"shard": shard}
        options = given | divided | config.task_options
        task = guarded(call_alone(construct, load_task(config.task["name"]), options))
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
    inspect_twice(tally, task, config.algorithm["name"])
    if config.algorithm["private"]:
        inspect_private(tally, task)
    return task


def lacks(config: Config, task: Task) -> list[str]:
    """Say what a run cannot tell of this task though it was asked for."""
    if config.run.stationarity and not hasattr(task, "everything"):
        return ["no stationarity: the task has no everything(), NaN is recorded"]
    return []


def build_agent(
    prepared: Prepared, task: Task, site: Site, here: Survivors, control: Control
) -> Agent:
    """Connect the agent with those who are here; it must be closed in the end."""
    config, tally = prepared.config, here.tally
    jointly(tally, lambda: require_overlap(config.run.overlap))
    algorithm = build_algorithm(config, prepared.about.agents)[0]
    wires = jointly(tally, lambda: _wires(config, task, algorithm, site.device))
    wires = replace(wires, waiting=here.waiting)
    gossip = jointly(tally, lambda: Gossip(here.comm, prepared.weights, site.clock, wires))
    prepare_heap()
    return Agent(
        task=task,
        algorithm=algorithm,
        gossip=gossip,
        tally=tally,
        control=control,
        clock=site.clock,
        iterations=config.run.iterations,
        eval_every=config.run.eval_every,
        progress=None if here.watched else _progress(config, gossip, site.local, tally.agent),
        skipping=config.run.on_nan == "skip",
        numbered=(prepared.about.numbers[tally.agent], prepared.about.agents),
    )


def build_tracer(output: OutputOptions, everyone: Survivors, site: Site) -> Tracer | None:
    """Return what draws the timeline of all agents, if one is asked for."""
    if output.trace is None:
        return None
    where = (Path(output.trace), output.overwrite, site.local.nodes, site.local.hosts)
    aligned = partial(align, everyone.comm, site.local.nodes)
    return Tracer(everyone.tally, aligned, partial(TraceFile, *where))


def _wires(config: Config, task: Task, algorithm: Algorithm, device: torch.device) -> Wires:
    itemsize = getattr(torch, config.run.dtype).itemsize
    largest = max(message_bytes(algorithm, Sizes.of(task, itemsize)), default=0)
    return Wires(config.run.transport, largest, layer_of(device), config.run.gpu_direct)


def _progress(config: Config, gossip: Gossip, local: node.Local, agent: int) -> Progress | None:
    overlap = config.run.overlap
    far = any(local.nodes[j] != local.nodes[agent] for j in gossip.neighbours)
    wanted = overlap == "always" or (overlap == "auto" and far)
    return Progress(gossip.progress) if wanted and threads_may_take_turns() else None
