"""A whole run on one rank, from the request to the summary."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi import startup
from sundsbo_mpi.agreement import on_root
from sundsbo_mpi.algorithms.safety import gamma_remark
from sundsbo_mpi.comm import world
from sundsbo_mpi.comm.alignment import align
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.control import STOPPED_STATUS, Control
from sundsbo_mpi.errors import AgreedError, DivergedError
from sundsbo_mpi.evaluation import Evaluation
from sundsbo_mpi.job import do_together
from sundsbo_mpi.metrics import assembled
from sundsbo_mpi.progress import Reporter
from sundsbo_mpi.recording import Recorder, other_techniques
from sundsbo_mpi.runfile import read_run
from sundsbo_mpi.summary import render_summary
from sundsbo_mpi.texttable import console
from sundsbo_mpi.tracing import TraceFile, Tracer

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.agent import Agent, End
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.config import OutputOptions, Request
    from sundsbo_mpi.runfile import Row
    from sundsbo_mpi.tasks.base import Task

    Facts = dict[str, np.ndarray[Any, Any]]


def run(request: Request) -> int:
    """Run one agent to the end; collective over COMM_WORLD.

    Returns the exit status: 0, or STOPPED_STATUS where the agents agreed to stop before the end.

    Raises:
        UsageError: the request cannot be met; an ``AgreedError`` once MPI runs.
        DivergedError: the iterates ceased to be finite; what was recorded before is kept.
    """
    began = time.monotonic()
    return do_together(lambda comm: _run(request, comm, began))


def _run(request: Request, comm: MPI.Intracomm, began: float) -> int:
    prepared, shard, comm = startup.prepare(request, comm)
    tally, config = Tally(comm), prepared.config
    site = startup.find_site(config, comm, tally)
    task = startup.build_task(config, tally, site.device, shard)
    control = Control(tally, began + (config.run.max_walltime or math.inf))
    agent = startup.build_agent(prepared, task, site, comm, control)
    prepared = prepared.connected(agent.gossip.network)
    reporter = Reporter(tally.is_root, config.run.iterations)
    recorder = _recorder(prepared, site, task, tally, reporter)
    tracer = _tracer(config.output, comm, tally, site)
    if tracer is not None:
        agent.clock.listener = tracer.notes

    def record(row: Row | None, w: Variables) -> None:
        _record(agent, recorder, reporter, row, w)
        if tracer is not None:
            tracer.write()

    def live() -> End:
        private = getattr(task, "private", None) if config.algorithm["private"] else None
        evaluate = Evaluation(agent, site.local.hosts, config.run.stationarity, record, private)
        try:
            with reporter:
                end = agent.run(evaluate, reporter.advance)
        except DivergedError:
            if tracer is not None:
                with suppress(AgreedError):  # to have diverged is the graver trouble
                    reporter.note(*tracer.finish())
            raise
        if config.run.save_final:
            whole = {} if private is None else {"x": assembled(tally, end.w["x"], private)}
            _keep_final(tally, recorder, end.w | whole)
        if tracer is not None:
            reporter.note(*tracer.finish())
        return end

    end = _to_the_end(agent, recorder, live)
    _tell(end, recorder, reporter)
    return 0 if end.stop is None else STOPPED_STATUS


def _to_the_end(agent: Agent, recorder: Recorder | None, live: Callable[[], End]) -> End:
    """Live; then close the run file, however that went, and the links between the agents.

    Closing the links is collective: it is left out where this rank alone is in trouble.
    """
    status, together = "failed", False
    try:
        end = live()
        status, together = "interrupted" if end.stop else "finished", True
        return end
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
            agent.close()


def _tell(end: End, recorder: Recorder | None, reporter: Reporter) -> None:
    """Say on rank 0 why the run was stopped, if it was, and what it reached."""
    if end.stop is not None:
        reporter.say(f"stopped after {end.iterations} iterations: {end.stop.sentence}")
    if recorder is not None and recorder.path is not None:
        console(launched=True).print(render_summary(read_run(recorder.path)))


def _recorder(
    prepared: startup.Prepared, site: startup.Site, task: Task, tally: Tally, reporter: Reporter
) -> Recorder | None:
    """Say what starts, and return what will write the run file, on rank 0; collective."""
    facts = _facts(tally, site, task)
    if facts is None:
        return None
    reporter.say(_headline(prepared, facts))
    reporter.note(*prepared.notes, *site.notes)
    if prepared.config.run.stationarity and not hasattr(task, "everything"):
        reporter.note("no stationarity: the task has no everything(), NaN is recorded")
    return Recorder(prepared, facts, world.library_version(), reporter)


def _tracer(
    output: OutputOptions, comm: MPI.Intracomm, tally: Tally, site: startup.Site
) -> Tracer | None:
    if output.trace is None:
        return None
    where = (Path(output.trace), output.overwrite, site.local.hosts, site.local.names)
    return Tracer(tally, partial(align, comm, site.local.hosts), partial(TraceFile, *where))


def _facts(tally: Tally, site: startup.Site, task: Task) -> Facts | None:
    """What the run file says about every agent, on rank 0; collective."""
    crowd = world.oversubscription(site.local)
    own = {
        "host": site.local.names[tally.agent],
        "device": str(site.device),
        "threads": site.threads,
        "train_samples": getattr(task, "train_samples", 0),
        "validation_samples": getattr(task, "validation_samples", 0),
        "oversubscribed": crowd.fact if crowd else "",
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
        f"{', '.join(places)}; {weights.description}, rho {weights.rho_text}"
    )


def _record(
    agent: Agent,
    recorder: Recorder | None,
    reporter: Reporter,
    row: Row | None,
    w: Variables,
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
