"""What rank 0 keeps of a run: the run file, and what the person watching is told."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import Continuation, Event, RunFile, RunPlan
from sundsbo_mpi.runfile.resuming import BEGINS, planned_after
from sundsbo_mpi.running.provenance import attributes, described, recognised_by, stacked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.runfile import Row
    from sundsbo_mpi.running.preparation import Prepared
    from sundsbo_mpi.running.progress import Reporter
    from sundsbo_mpi.topology import Mixing

EVENTS = 1000
"""How many events a run file takes, and from a run that has more the first ones."""
EVENT_SECONDS = 10.0
"""Between two writings of events, which copy the file; those in between wait for the next row."""


class Recorder:
    """Writes the rows and events; used on rank 0 alone.

    The file is made when the first row tells the names of the task's metrics, or taken up again.
    """

    def __init__(
        self, prepared: Prepared, agents_info: dict[str, Any], library: str, reporter: Reporter
    ) -> None:
        self._prepared = prepared
        self._agents_info = agents_info
        self._library = library
        self._reporter = reporter
        self._file: RunFile | None = None
        self._waiting: list[Event] = []
        self._noted = 0
        self._written = -math.inf

    @property
    def path(self) -> Path | None:
        """Where the run file is, once it exists."""
        return self._file.path if self._file else None

    @property
    def last(self) -> int:
        """The iteration of the last row in the file, -1 where there is none."""
        return self._file.last if self._file else -1

    def start(self, row: Row, w: Variables) -> None:
        """Make the run file from the first row, usually that of iteration 0, and the variables.

        Raises:
            UsageError: it cannot be made.
        """
        config, weights = self._prepared.config, self._prepared.weights
        begins = {BEGINS: row.iteration} if row.iteration else {}
        plan = RunPlan(
            agents=weights.agents,
            rows=1 + planned_after(row.iteration, config.run.iterations, config.run.eval_every),
            task_metrics=tuple(row.task),
            variables={v: s.numel() for v, s in w.items()},
            edges=weights.edges(),
            weights=stacked(weights),
            attributes=attributes(self._prepared, self._library, self._crowd) | begins,
            agents_info=self._agents_info,
            save_final=config.run.save_final,
            dtype=config.run.dtype,
        )
        if config.output.file:
            self._file = RunFile.create(config.output.file, plan, config.output.overwrite)
        else:
            self._file = RunFile.create_default(config.task["name"], config.algorithm["name"], plan)
        self._warn()

    def resume(self, iteration: int, sentence: str) -> None:
        """Go on with the run's file from a checkpoint of the run: later rows are dropped.

        Args:
            iteration: Iterations done at the checkpoint.
            sentence: What the event "resumed" says.

        Raises:
            UsageError: the file is gone, damaged, another run's, or being written; or it lacks
                rows, or cannot be written.
        """
        resumption, weights = self._prepared.resumption, self._prepared.weights
        assert resumption is not None
        assert resumption.run_file is not None
        details: dict[str, Any] = {
            "mpi_library": self._library,
            "transport": self._prepared.transport,
            "hosts": self._agents_info["host"].tolist(),
        }
        details |= described(weights) if resumption.relinked else {}
        event = Event(iteration, "resumed", sentence, details)
        numbers = np.array(self._prepared.about.numbers, dtype=np.int64)
        self._reopen(resumption.run_file, self._continuation(event, weights), numbers)

    def regroup(
        self, event: Event, agents: Sequence[int], weights: Mixing, path: Path | None = None
    ) -> None:
        """Note an event after which rows come from other agents, over other links.

        Args:
            event: What has happened; ``iteration`` is that of the last row which stays.
            agents: The agents of the rows to come, by their numbers at the beginning of the run.
            weights: What they mix with; noted with the event.
            path: The run file, where this rank has not written it so far: the one that has is gone.

        Raises:
            UsageError: the file cannot be written.
        """
        details = {**event.details, "agents": list(agents), **described(weights)}
        event = replace(event, details=details)
        numbers = np.array(agents, dtype=np.int64)
        if self._file is not None:
            self._file.note([event], numbers, weights.edges())
        else:
            assert path is not None
            how = replace(self._continuation(event, weights), again=False)
            self._reopen(path, how, numbers)

    def event(self, iteration: int, kind: str, sentence: str) -> None:
        """Write down what has happened; many at once are written with the next row.

        A full disk is told, and nothing else: the run does not depend on it.
        """
        if self._noted < EVENTS:
            self._noted += 1
            self._waiting.append(Event(iteration, kind, sentence))
        if time.monotonic() - self._written >= EVENT_SECONDS:
            self._write_events()

    def row(self, row: Row) -> None:
        """Append a row and show it.

        Raises:
            UsageError: the task reports other names than before, or the file cannot be written any
                more; it keeps the rows before this one.
        """
        assert self._file is not None
        self._file.append(row)
        self._reporter.row(row)
        self._write_events()

    def final(self, variable: str, everyone: np.ndarray) -> None:
        """Keep the agents' last iterates of a variable, shape (n, d).

        Raises:
            UsageError: the file cannot be written any more.
        """
        assert self._file is not None
        for agent, s in enumerate(everyone):
            self._file.write_final(variable, agent, s)

    def sync(self) -> None:
        """Wait until all rows are on the disk itself, as they must be before a checkpoint is.

        Raises:
            UsageError: the file cannot be written any more.
        """
        if self._file is not None:
            self._file.sync()

    def close(self, status: str) -> None:
        """Say how the run ended and close its file, if there is one; a full disk is told."""
        if self._file is None:
            return
        self._write_events()
        try:
            self._file.finish(status)
        except UsageError as error:
            self._reporter.note(str(error))
        finally:
            self._file.close()

    @property
    def _crowd(self) -> str:
        """What is said of agents that share cores, "" if none do."""
        return next(filter(None, self._agents_info["oversubscribed"].tolist()), "")

    def _continuation(self, event: Event, weights: Mixing) -> Continuation:
        config = self._prepared.config
        return Continuation(
            iteration=event.iteration,
            iterations=config.run.iterations,
            eval_every=config.run.eval_every,
            event=event,
            edges=weights.edges(),
            identity={**recognised_by(config), "agents": self._prepared.about.agents},
            attributes={"config": json.dumps(config.as_dict())},
        )

    def _reopen(
        self, path: str | Path, how: Continuation, agents: NDArray[np.int64] | None = None
    ) -> None:
        self._file = RunFile.resume(path, how, agents)
        self._warn()

    def _warn(self) -> None:
        if self._file is not None and not self._file.locked:
            self._reporter.note(
                f"the file system of '{self._file.path}' knows no locks: see to it that no other "
                "run is given the same --output"
            )

    def _write_events(self) -> None:
        if self._file is None or not self._waiting:
            return
        events, self._waiting = self._waiting, []
        self._written = time.monotonic()
        try:
            self._file.note(events)
        except UsageError as error:
            self._reporter.note(f"{len(events)} events are not in the run file: {error}")
