"""A whole run on one rank, from the request to the summary."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from sundsbo_mpi import startup
from sundsbo_mpi.agreement import on_root
from sundsbo_mpi.comm import world
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.errors import AgreedError, DivergedError
from sundsbo_mpi.evaluation import Evaluation
from sundsbo_mpi.progress import Reporter
from sundsbo_mpi.recording import Recorder
from sundsbo_mpi.runfile import read_run
from sundsbo_mpi.summary import render_summary

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.config import Request
    from sundsbo_mpi.estimators import Variables
    from sundsbo_mpi.runfile import Row
    from sundsbo_mpi.tasks.base import Task


def run(request: Request) -> None:
    """Run one agent to the end; collective over COMM_WORLD.

    Raises:
        UsageError: the request cannot be met; an ``AgreedError`` once MPI runs.
        DivergedError: the iterates ceased to be finite; what was recorded before is kept.
    """
    comm = world.start_mpi()
    tally = Tally(comm)
    try:
        _run(request, comm, tally)
    except (AgreedError, DivergedError):
        raise
    except BaseException as error:  # whatever it is, the others must not wait
        world.abort(error)


def _run(request: Request, comm: MPI.Intracomm, tally: Tally) -> None:
    prepared, shard = startup.prepare(request, tally)
    config = prepared.config
    placement = startup.place(config, tally, comm)
    task = startup.build_task(config, tally, placement.device, shard)
    agent = startup.build_agent(prepared, task, placement.device, comm, tally)
    reporter = Reporter(tally.is_root, config.run.iterations)
    reporter.say(*prepared.notes, *placement.notes, *_remarks(prepared, placement, task))
    facts = _facts(tally, placement, task)
    recorder = None
    if facts is not None:
        recorder = Recorder(prepared, facts, world.library_version(), reporter)
    evaluate = Evaluation(
        agent=agent,
        remote=startup.remote_neighbours(agent, placement.local),
        with_stationarity=config.run.stationarity,
        record=partial(_record, tally, recorder),
    )
    status = "failed"
    try:
        with reporter:
            w = agent.run(evaluate, reporter.advance)
        if config.run.save_final:
            _keep_final(tally, recorder, w)
        status = "finished"
    except (AgreedError, DivergedError):
        agent.gossip.close()
        raise
    finally:
        if recorder is not None:
            recorder.close(status)
    agent.gossip.close()
    if recorder is not None and recorder.path is not None:
        Console(highlight=False).print(render_summary(read_run(recorder.path)))


def _remarks(
    prepared: startup.Prepared, placement: startup.Placement, task: Task
) -> tuple[str, ...]:
    config, weights = prepared.config, prepared.weights
    dataset = f" ({config.task['dataset']})" if config.task.get("dataset") else ""
    remarks = [
        f"{config.algorithm['name']} on {config.task['name']}{dataset}: {weights.agents} agents, "
        f"{weights.name}, rho {weights.rho:.4f}, {placement.device} with {placement.threads} "
        f"thread{'s' * (placement.threads != 1)} each"
    ]
    if config.run.stationarity and not hasattr(task, "everything"):
        remarks.append("no stationarity: the task has no everything(), NaN is recorded")
    return tuple(remarks)


def _facts(
    tally: Tally, placement: startup.Placement, task: Task
) -> dict[str, np.ndarray[Any, Any]] | None:
    """What the run file says about every agent, on rank 0; collective."""
    own = {
        "host": placement.local.names[tally.agent],
        "device": str(placement.device),
        "threads": placement.threads,
        "train_samples": getattr(task, "train_samples", 0),
        "validation_samples": getattr(task, "validation_samples", 0),
    }
    everyone = tally.gather(own)
    if everyone is None:
        return None
    return {name: np.array([facts[name] for facts in everyone]) for name in own}


def _record(tally: Tally, recorder: Recorder | None, row: Row | None, w: Variables) -> None:
    """Write the row on rank 0; collective, so that all leave together if it cannot be written."""

    def write() -> None:
        assert recorder is not None
        assert row is not None
        if recorder.path is None:
            recorder.start(row, w)
        recorder.row(row)

    on_root(tally, write)


def _keep_final(tally: Tally, recorder: Recorder | None, w: Variables) -> None:
    everyone = tally.gather({v: s.numpy(force=True) for v, s in w.items()})
    if recorder is not None and everyone is not None:
        for agent, variables in enumerate(everyone):
            recorder.final(agent, variables)
