"""A thread that keeps messages moving while the agent computes.

MPI libraries move the data of large messages only inside calls to them: a message that was merely
posted before a gradient would still travel after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from sundsbo_mpi.errors import UsageError

SHARE = 0.25
"""Of the time since the block began, a pause; where cores are scarce, every look takes time from
what it runs beside."""
SHORTEST_PAUSE, LONGEST_PAUSE = 1e-4, 4e-3
"""Seconds.  Longer pauses would let a fast link idle: TCP's buffers of some MB are sent by then."""


def threads_may_take_turns() -> bool:
    """Tell whether MPI allows calls from several threads, one at a time."""
    from mpi4py import MPI

    return MPI.Query_thread() >= MPI.THREAD_SERIALIZED


def require_overlap(overlap: str) -> None:
    """Check that what run.overlap demands is allowed.

    Raises:
        UsageError: it is "always", and MPI allows no calls from another thread.
    """
    if overlap == "always" and not threads_may_take_turns():
        raise UsageError(
            "--overlap always, but this MPI was started for calls from one thread only: leave "
            "MPI4PY_RC_THREAD_LEVEL out or set it to serialized, or use --overlap never."
        )


class Progress:
    """``with progress: ...`` calls ``move`` every so often beside the block, until it returns True.

    The longer the block goes on, the longer the pauses between the calls.

    MPI must allow calls from any one thread at a time (``MPI.THREAD_SERIALIZED``): the block makes
    none, and none is under way any more when it ends.

    Args:
        move: Lets MPI work; returns whether nothing is left to do.
    """

    def __init__(self, move: Callable[[], bool]) -> None:
        self._move = move
        self._wanted = threading.Event()
        self._calling = threading.Lock()
        self._error: BaseException | None = None
        self._closed = False
        self._began = 0.0
        # A daemon: whatever ends the program need not wait for a thread that only waits itself.
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """Wake the thread."""
        self._began = time.perf_counter()
        self._wanted.set()
        return self

    def __exit__(self, *_: object) -> None:
        """Let the thread rest; raise what it met."""
        self._wanted.clear()
        with self._calling:
            error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._wanted.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            if self._closed:
                return
            with self._calling:
                # Looked at again: the block may have ended between the wait and the lock.
                if self._wanted.is_set() and self._finished():
                    self._wanted.clear()
            wished = SHARE * (time.perf_counter() - self._began)
            time.sleep(min(max(wished, SHORTEST_PAUSE), LONGEST_PAUSE))

    def _finished(self) -> bool:
        try:
            return self._move()
        except BaseException as error:
            self._error = error
            return True
