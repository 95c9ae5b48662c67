"""Ends a job that hangs: MPI itself waits for ever for a rank that never comes."""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator

from sundsbo_mpi.comm.ending import tag

LINGER_SECONDS = 3.0
"""Between the words of a rank and its end, which ends the others: they may have words, too."""
MARGIN_SECONDS = 5.0
"""How much longer the interpreter's own timer waits for a thread that should have spoken."""
LONGEST_SECONDS = 86400.0
"""Between two looks at the time: timers cannot be set for any number of seconds."""
HUNG_STATUS = 1


class Watchdog:
    """Ends the process, with status 1, when one iteration takes longer than ``seconds``.

    A daemon thread watches the thread that made the object: it prints one sentence and that
    thread's Python stack, waits LINGER_SECONDS, and exits without a call to MPI, on which every
    launcher ends the job.  It needs the interpreter, which is free while the watched thread waits
    in MPI; for one that hangs without letting go of it there is ``faulthandler``'s timer, set anew
    whenever the thread has looked at the time.  There is one such timer in a process: an object
    with ``seconds`` above 0 takes it, and leaves it off.

    Args:
        seconds: From one ``rearm`` to the next; 0 for no limit.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds or math.inf
        self._look_seconds = min(self._seconds, LONGEST_SECONDS)
        self._watched, self._tag = threading.get_ident(), tag()
        self._iteration = 0
        self._timer = threading.Lock()
        """Held by whoever sets the timer, from looking at the deadline on."""
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._deadline = time.monotonic() + self._seconds
        if seconds:
            self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
            self._thread.start()

    def rearm(self, iteration: int) -> None:
        """Begin the time of an iteration."""
        self._iteration = iteration
        self._deadline = time.monotonic() + self._seconds

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let a block take as long as it needs; the time begins anew after it."""
        self._set(math.inf)
        try:
            yield
        finally:
            self._set(time.monotonic() + self._seconds)

    def close(self) -> None:
        """Watch no more."""
        if self._thread is not None:
            self._closed.set()
            self._thread.join()
            self._set(math.inf)

    def _set(self, deadline: float) -> None:
        with self._timer:
            self._deadline = deadline
            self._set_timer()

    def _set_timer(self) -> None:
        if self._thread is None:
            return
        if self._deadline == math.inf:
            faulthandler.cancel_dump_traceback_later()
        else:
            late = self._look_seconds + LINGER_SECONDS + MARGIN_SECONDS
            faulthandler.dump_traceback_later(late, exit=True, file=2)

    def _watch(self) -> None:
        while True:
            with self._timer:
                remaining = self._deadline - time.monotonic()
                if remaining <= 0:
                    break
                self._set_timer()
            if self._closed.wait(min(remaining, self._look_seconds)):
                return
        try:
            self._bark()
            time.sleep(LINGER_SECONDS)
        finally:
            os._exit(HUNG_STATUS)

    def _bark(self) -> None:
        stack = traceback.format_stack(sys._current_frames()[self._watched])
        sentence = (
            f"no progress for {self._seconds:g} s in iteration {self._iteration}, which is the "
            "limit set by --comm-timeout: the job ends. This rank is in"
        )
        lines = [sentence, *"".join(stack).splitlines()]
        # Past Python's own buffer, whose lock the watched thread may hold.
        os.write(2, "".join(f"{self._tag} {line}\n" for line in lines).encode(errors="replace"))
