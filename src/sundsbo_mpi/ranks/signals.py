"""Signals that ask a run to stop: the first of a kind is a request, the second is not."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

STOPPING = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT)
WARNING = (signal.SIGUSR1, signal.SIGUSR2)
"""Those that schedulers send some time before the end, and whose usual action ends a process."""
SAME_SECONDS = 1.0
"""A terminal, a launcher and a scheduler may each deliver one request; what comes later is another.
"""


@contextmanager
def stopping(
    ask: Callable[[str], None], kinds: Sequence[signal.Signals] = STOPPING
) -> Iterator[None]:
    """Within the block the first signal of each of the ``kinds`` does no more than to ask.

    ``ask`` is called with the signal's name, such as "SIGUSR1", by another thread, and so also
    while the main thread is blocked in MPI, where Python's own handlers would have to wait.  For
    the same reason a second signal of a kind, more than SAME_SECONDS after the first, ends the
    process from there, with status 128 + its number.  Another kind asks again: schedulers send
    SIGTERM some time after the warning by SIGUSR1, when a checkpoint may be under way.

    Signals that are ignored, as in a shell's background, stay so, as do those that a library
    handles in C; the former actions are back after the block.  For the main thread only.
    """
    receiving, sending = os.pipe()
    os.set_blocking(sending, False)
    listener = threading.Thread(
        target=_listen, args=(receiving, ask, kinds), name="signals", daemon=True
    )
    listener.start()
    former_fd = signal.set_wakeup_fd(sending, warn_on_full_buffer=False)
    former = {n: signal.getsignal(n) for n in kinds}
    former = {n: action for n, action in former.items() if action not in (signal.SIG_IGN, None)}
    for number in former:
        signal.signal(number, _noted)
        signal.siginterrupt(number, False)  # what a library is reading or writing goes on
    try:
        yield
    finally:
        for number, action in former.items():
            signal.signal(number, action)
        signal.set_wakeup_fd(former_fd)
        os.write(sending, bytes([END]))
        listener.join()
        os.close(sending)
        os.close(receiving)


END = 0
"""Number of no signal."""


def _noted(_number: int, _frame: object) -> None:
    """Nothing is left to do: Python has written the number into the pipe already, from C."""


def _listen(receiving: int, ask: Callable[[str], None], kinds: Sequence[signal.Signals]) -> None:
    """Act on the signals whose numbers come through the pipe, one byte each."""
    first: dict[int, float] = {}
    while (number := os.read(receiving, 1)[0]) != END:
        now = time.monotonic()
        if number not in kinds:
            continue  # a user's task may have handlers of its own
        if number not in first:
            first[number] = now
            ask(signal.Signals(number).name)
        elif now - first[number] > SAME_SECONDS:
            os._exit(128 + number)
