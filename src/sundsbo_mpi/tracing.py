"""A timeline of what all agents did when, as a file for chrome://tracing or ui.perfetto.dev.

The file is an array of JSON objects in the trace event format: one complete event (``"ph": "X"``)
for every phase of every agent (see ``clock.PHASES``), with its beginning and duration in
microseconds since the trace began; hosts are shown as processes (pid) and agents as their threads
(tid), with their names in metadata events.
"""

from __future__ import annotations

import json
import os
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.clock import PHASES
from sundsbo_mpi.comm.agreement import on_root
from sundsbo_mpi.errors import UsageError, reason
from sundsbo_mpi.runfile.naming import check_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sundsbo_mpi.comm.alignment import Alignment
    from sundsbo_mpi.comm.tally import Tally

MOST_EVENTS = 1_000_000
"""In a file, of all agents together: more (100 MB) no viewer shows."""
NUMBERS = {phase: number for number, phase in enumerate(PHASES)}
END = b"\n]\n"


class Notes:
    """The phases of one agent that have not been written yet; a clock's ``listener``.

    Args:
        most: How many it notes in all: memory is bounded however long a run.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._noted = array("d")
        self.left_out = 0

    def __call__(self, phase: str, began: float, ended: float) -> None:
        """Note a phase."""
        if self._left:
            self._left -= 1
            self._noted.extend((NUMBERS[phase], began, ended))
        else:
            self.left_out += 1

    def take(self) -> NDArray[np.float64]:
        """Return what was noted since the last time: rows of phase number, beginning and end."""
        noted, self._noted = self._noted, array("d")
        return np.frombuffer(noted, dtype=np.float64).reshape(-1, 3)


def check_trace(wanted: str | Path | None, overwrite: bool) -> None:
    """Refuse, before anything is built, a path that cannot become the trace, if one is wanted.

    Raises:
        UsageError: The file exists and ``overwrite`` is off, or it cannot be written.
    """
    if wanted is None:
        return
    path = Path(wanted)
    if path.is_dir():
        raise UsageError(f"the trace '{path}' is a directory: choose a file name with --trace.")
    if not overwrite and os.path.lexists(path):
        raise _exists(path)
    check_folder(path, "--trace")


def _exists(path: Path) -> UsageError:
    return UsageError(
        f"the trace '{path}' exists: choose another --trace or replace it by --overwrite."
    )


class TraceFile:
    """The file, written by rank 0; it is complete JSON after every ``append``.

    Args:
        path: Where to write.
        overwrite: Whether an existing file is replaced.
        hosts: For every agent a number of its host.
        names: For every agent the name of its host.

    Raises:
        UsageError: The file cannot be written, or exists.
    """

    def __init__(
        self, path: Path, overwrite: bool, hosts: Sequence[int], names: Sequence[str]
    ) -> None:
        self._path, self._hosts = path, hosts
        self._began = time.perf_counter()
        head = b",\n".join(self._metadata(hosts, names))
        try:
            with path.open("wb" if overwrite else "xb") as file:
                file.write(b"[\n" + head + END)
        except FileExistsError:
            raise _exists(path) from None
        except OSError as error:
            raise self._refusal(error) from None

    def _refusal(self, error: OSError) -> UsageError:
        return UsageError(
            f"cannot write the trace '{self._path}': {reason(error)}; choose another --trace."
        )

    @staticmethod
    def _metadata(hosts: Sequence[int], names: Sequence[str]) -> Iterable[bytes]:
        for agent, (host, name) in enumerate(zip(hosts, names, strict=True)):
            named = [("thread_name", agent, f"agent {agent}")]
            if agent == host:
                named.insert(0, ("process_name", agent, f"host {name}"))
            for what, tid, called in named:
                event = {"name": what, "ph": "M", "pid": host, "tid": tid, "args": {"name": called}}
                yield json.dumps(event).encode()

    def append(self, events: Iterable[bytes]) -> None:
        """Write events, each one JSON object.

        Raises:
            UsageError: They cannot be written.
        """
        try:
            with self._path.open("r+b") as file:
                file.seek(-len(END), os.SEEK_END)
                for event in events:
                    file.write(b",\n" + event)
                file.write(END)
        except OSError as error:
            raise self._refusal(error) from error

    def phases(self, agent: int, noted: NDArray[np.float64]) -> Iterable[bytes]:
        """Write an agent's phases, with times of rank 0's clock, as events."""
        pid = self._hosts[agent]
        for phase, began, ended in noted.tolist():
            yield b'{"name":"%b","ph":"X","ts":%.3f,"dur":%.3f,"pid":%d,"tid":%d}' % (
                PHASES[int(phase)].encode(),
                1e6 * (began - self._began),
                1e6 * (ended - began),
                pid,
                agent,
            )


class Tracer:
    """Brings the phases of all agents into one file on rank 0; making one is collective.

    Args:
        tally: All agents.
        align: Compares this agent's clock with rank 0's; collective.
        make: Makes the file, on rank 0.

    Raises:
        AgreedError: The file cannot be written.
    """

    def __init__(
        self, tally: Tally, align: Callable[[], Alignment], make: Callable[[], TraceFile]
    ) -> None:
        self._tally, self._align = tally, align
        self.notes = Notes(MOST_EVENTS // tally.agents)
        self._accuracy = 0.0
        self._file: TraceFile | None = None

        def on_rank_0() -> None:
            self._file = make()

        on_root(tally, on_rank_0)

    def write(self) -> None:
        """Write what all agents have noted since the last time; collective.

        Clocks drift: they are compared again each time.

        Raises:
            AgreedError: It cannot be written.
        """
        alignment = self._align()
        noted = self.notes.take() + np.array([0, alignment.offset, alignment.offset])
        everyone = self._tally.gather((noted, alignment.accuracy))

        def on_rank_0() -> None:
            assert self._file is not None
            for agent, (theirs, accuracy) in enumerate(everyone or ()):
                self._accuracy = max(self._accuracy, accuracy)
                self._file.append(self._file.phases(agent, theirs))

        on_root(self._tally, on_rank_0)

    def finish(self) -> list[str]:
        """Write the rest; return what must be known about the file, on rank 0.  Collective."""
        self.write()
        left_out = self._tally.gather(self.notes.left_out)
        said = []
        if self._accuracy:
            said.append(f"the trace's hosts agree on the time to {1e6 * self._accuracy:.0f} µs")
        if left_out and any(left_out):
            said.append(
                f"the trace was full at {MOST_EVENTS} events: the last {max(left_out)} of an agent "
                "are left out"
            )
        return said
