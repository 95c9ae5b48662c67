"""A whole run on one rank, from the request to the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from sundsbo_mpi import startup
from sundsbo_mpi.agreement import meet, on_root
from sundsbo_mpi.algorithms.safety import gamma_remark
from sundsbo_mpi.comm import world
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.errors import AgreedError, DivergedError
from sundsbo_mpi.evaluation import Evaluation
from sundsbo_mpi.progress import Reporter
from sundsbo_mpi.recording import Recorder, other_techniques
from sundsbo_mpi.runfile import read_run
from sundsbo_mpi.summary import render_summary

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.agent import Agent
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.config import Request
    from sundsbo_mpi.runfile import Row
    from sundsbo_mpi.tasks.base import Task

    Facts = dict[str, np.ndarray[Any, Any]]


def run(request: Request) -> None:
    """Run one agent to the end; collective over COMM_WORLD.

    Raises:
        UsageError: the request cannot be met; an ``AgreedError`` once MPI runs.
        DivergedError: the iterates ceased to be finite; what was recorded before is kept.
    """
    comm = world.start_mpi()
    tally = Tally(comm)
    meet(tally)  # some rank may not have understood its command line
    try:
        _run(request, comm, tally)
    except (AgreedError, DivergedError):
        raise
    except BaseException as error:  # whatever it is, the others must not wait
        world.abort(error)


def _run(request: Request, comm: MPI.Intracomm, tally: Tally) -> None:
    prepared, shard = startup.prepare(request, tally)
    config = prepared.config
    site = startup.find_site(config, comm, tally)
    task = startup.build_task(config, tally, site.device, shard)
    agent = startup.build_agent(prepared, task, site.device, comm, tally)
    reporter = Reporter(tally.is_root, config.run.iterations)
    recorder = None
    facts = _facts(tally, site, task)
    if facts is not None:
        recorder = Recorder(prepared, facts, world.library_version(), reporter)
        reporter.say(_headline(prepared, facts))
        reporter.note(*prepared.notes, *site.notes)
        if config.run.stationarity and not hasattr(task, "everything"):
            reporter.note("no stationarity: the task has no everything(), NaN is recorded")
    record = partial(_record, agent, recorder, reporter)
    evaluate = Evaluation(agent, site.local.hosts, config.run.stationarity, record)
    with _ending(agent, recorder):
        with reporter:
            w = agent.run(evaluate, reporter.advance)
        if config.run.save_final:
            _keep_final(tally, recorder, w)
    if recorder is not None and recorder.path is not None:
        # Plain text: launchers give rank 0 a terminal of their own and write it to a file.
        Console(highlight=False, force_terminal=False).print(
            render_summary(read_run(recorder.path))
        )


@contextmanager
def _ending(agent: Agent, recorder: Recorder | None) -> Iterator[None]:
    """Close the run file, however the block ends, and the links between the agents.

    Closing the links is collective: it is left out where this rank alone is in trouble.
    """
    status, together = "failed", False
    try:
        yield
        status, together = "finished", True
    except (AgreedError, DivergedError):
        together = True
        raise
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        if recorder is not None:
            recorder.close(status)
        if together:
            agent.gossip.close()


def _facts(tally: Tally, site: startup.Site, task: Task) -> Facts | None:
    """What the run file says about every agent, on rank 0; collective."""
    own = {
        "host": site.local.names[tally.agent],
        "device": str(site.device),
        "threads": site.threads,
        "train_samples": getattr(task, "train_samples", 0),
        "validation_samples": getattr(task, "validation_samples", 0),
    }
    everyone = tally.gather(own)
    if everyone is None:
        return None
    return {name: np.array([facts[name] for facts in everyone]) for name in own}


def _headline(prepared: startup.Prepared, facts: Facts) -> str:
    """Say in one line what starts and where."""
    config, weights = prepared.config, prepared.weights
    dataset = f" ({config.task['dataset']})" if config.task.get("dataset") else ""
    mixed = f" with {other}" if (other := other_techniques(config)) else ""
    kinds = Counter(
        (str(device).partition(":")[0], int(threads))
        for device, threads in zip(facts["device"], facts["threads"], strict=True)
    )
    places = [
        f"{f'{count} on ' if len(kinds) > 1 else ''}{device} with {threads} "
        f"thread{'s' * (threads != 1)} each"
        for (device, threads), count in kinds.items()
    ]
    return (
        f"{config.algorithm['name']}{mixed} on {config.task['name']}{dataset}: "
        f"{weights.agents} agents, "
        f"{', '.join(places)}; {weights.description}, rho {weights.rho:.4f}"
    )


def _record(
    agent: Agent, recorder: Recorder | None, reporter: Reporter, row: Row | None, w: Variables
) -> None:
    """Write the row on rank 0; collective, so that all leave together if it cannot be written."""

    def write() -> None:
        assert recorder is not None
        assert row is not None
        if recorder.path is None:
            recorder.start(row, w)
            lipschitz = getattr(agent.task, "lipschitz", row.lipschitz)
            reporter.note(*gamma_remark(agent.algorithm.penalty(0), lipschitz))
        recorder.row(row)

    on_root(agent.tally, write)


def _keep_final(tally: Tally, recorder: Recorder | None, w: Variables) -> None:
    for v, s in w.items():
        everyone = tally.stack(s.numpy(force=True))
        if recorder is not None and everyone is not None:
            recorder.final(v, everyone)
