"""A whole run on one rank, from the request to the summary."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.checkpoint.resuming import candidates
from sundsbo_mpi.comm.survivors import Survivors, endure
from sundsbo_mpi.comm.tally import Tally
from sundsbo_mpi.comm.waiting import Watchful
from sundsbo_mpi.errors import AgreedError, DivergedError, UsageError
from sundsbo_mpi.ranks import signals
from sundsbo_mpi.ranks.control import STOPPED_STATUS, Control, Stop
from sundsbo_mpi.ranks.job import do_together
from sundsbo_mpi.ranks.watchdog import Watchdog
from sundsbo_mpi.runfile import read_run
from sundsbo_mpi.running import startup
from sundsbo_mpi.running.living import Run
from sundsbo_mpi.running.preparation import prepare
from sundsbo_mpi.wording import resuming

if TYPE_CHECKING:
    from mpi4py import MPI

    from sundsbo_mpi.agent import End
    from sundsbo_mpi.config.resolving import Config, Request


def run(request: Request, began: float, early: list[str]) -> int:
    """Run one agent to the end; collective over COMM_WORLD.

    Args:
        request: What the user asks for.
        began: When the program began, by ``time.monotonic``.
        early: Names of the signals that have asked it to stop, to which later ones are added until
            the agents can be asked.

    Returns the exit status: 0, or STOPPED_STATUS where the agents agreed to stop before the end.

    Raises:
        UsageError: the request cannot be met; an ``AgreedError`` once MPI runs.
        DivergedError: the iterates ceased to be finite; what was recorded before is kept.
    """
    return do_together(lambda comm: _run(request, comm, began, early))


def _run(request: Request, comm: MPI.Intracomm, began: float, early: list[str]) -> int:
    prepared, shard, comm = prepare(request, comm)
    tally, config, resumption = Tally(comm), prepared.config, prepared.resumption
    tally.settle()
    threads = resumption.threads[tally.agent] if resumption else None
    site, notes = startup.find_site(config, comm, tally, threads)
    task = startup.build_task(prepared, tally, site.device, shard)
    prepared = prepared.noting(*notes, *startup.lacks(config, task))
    waiting = Watchful(comm) if config.run.on_failure == "continue" else site.local.waiting
    everyone = Survivors(comm, tuple(prepared.about.numbers), waiting)
    control = _control(config, tally, began)
    one = Run(prepared, site, task, control, everyone)
    with signals.stopping(lambda name: control.ask(Stop[name])):
        for name in early:
            control.ask(Stop[name])
        end = _to_the_end(one, everyone, config)
        _tell(end, config, one)
    return 0 if end.stop is None else STOPPED_STATUS


def _control(config: Config, tally: Tally, began: float) -> Control:
    deadline = began + (config.run.max_walltime or math.inf)
    saves = config.output.checkpoint is not None
    return Control(tally, deadline, (saves and config.output.checkpoint_seconds) or math.inf)


def _to_the_end(one: Run, everyone: Survivors, config: Config) -> End:
    """Live; then close the run file, however that went, and the links between the agents.

    Closing the links is collective: it is left out where this rank alone is in trouble.
    """
    status, together = "failed", False
    watchdog = Watchdog(config.run.comm_timeout)
    try:
        if everyone.watched:
            end = endure(everyone, lambda here: one.live(here, watchdog))
        else:
            end = one.live(everyone, watchdog)
        status, together = "interrupted" if end.stop else "finished", True
        return end
    except (AgreedError, DivergedError) as error:
        together = True
        if one.here.agents[0] != everyone.agents[0]:  # rank 0 is lost, which says such things
            one.reporter.say(f"sundsbo-mpi: {error}")
        raise
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        watchdog.close()
        one.close(status, together=together)


def _tell(end: End, config: Config, one: Run) -> None:
    """Say on the rank that reports why the run was stopped, if it was, and what it reached."""
    if end.stop is not None and one.here.tally.is_root:
        one.reporter.say(f"stopped after {end.iterations} iterations: {end.stop.sentence}")
        if (folder := config.output.checkpoint) is not None:
            enduring = config.run.on_failure == "continue"
            again = resuming(folder, len(one.here.agents), enduring=enduring)
            one.reporter.say(_from_where(folder, end.iterations, again))
    if one.run_file is not None:
        # Ranks that say nothing start sooner without these.
        from sundsbo_mpi.summary import render_summary
        from sundsbo_mpi.texttable import console

        with suppress(UsageError, OSError):  # of a disk that failed in the end, or has no room
            console(launched=True).print(render_summary(read_run(one.run_file)))


def _from_where(folder: str, done: int, again: str) -> str:
    """Say how a stopped run goes on, and from where if its last checkpoint could not be kept."""
    try:
        kept = candidates(Path(folder))[0].manifest.iteration
    except UsageError as error:
        return f"it cannot go on: {error}"
    return f"go on with: {again}" + ("" if kept == done else f" (from iteration {kept})")
