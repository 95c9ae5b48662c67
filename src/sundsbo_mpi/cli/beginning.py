"""The beginning of a run, or of one that goes on, before anything large is loaded."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sundsbo_mpi.config.resolving import Request


def begin(request: Request, *, print_config: bool) -> int:
    """Run what is asked for, or print its settings; return the exit status.

    A scheduler's warning that comes while MPI and torch are loaded stops the run as a later one.
    """
    if print_config:
        from sundsbo_mpi.cli.printing import print_settings

        print_settings(request)
        return 0
    from sundsbo_mpi.ranks import signals

    began = time.monotonic()
    early: list[str] = []
    with signals.stopping(early.append, signals.WARNING):
        with loading():
            from sundsbo_mpi.running.run import run

        return run(request, began, early)


@contextmanager
def loading() -> Iterator[None]:
    """Load MPI, and in the block what needs it, past Python's garbage collector.

    What is imported stays as long as the process.  The collector would look through the more than
    100,000 objects that torch is made of several times while they are made, and again later, which
    is a seventh of the start's processor time; from here on it looks at newer ones only.

    Raises:
        UsageError: there is no MPI library.
    """
    from sundsbo_mpi.comm.world import load_mpi

    gc.disable()
    try:
        load_mpi()  # first: the other imports would initialise MPI, whatever the launcher
        yield
        gc.freeze()
    finally:
        gc.enable()


def require_filled(flags: Mapping[str, Any]) -> None:
    """Refuse flags that were given an empty text.

    Raises:
        UsageError: one was, as of a variable of the shell that is not set.
    """
    if empty := next((name for name, value in flags.items() if value == ""), None):
        flag = empty.upper() if empty == "directory" else f"--{empty.replace('_', '-')}"
        raise UsageError(
            f"{flag} is empty: give it a value, or leave it out (is a shell variable unset?)."
        )
