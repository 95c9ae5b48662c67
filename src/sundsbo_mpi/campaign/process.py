"""Starting a launcher that does not outlive its campaign, one campaign per directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from sundsbo_mpi import durable
from sundsbo_mpi.errors import UsageError, reason

PATIENCE_SECONDS = 30
"""How long a launcher may take to end its ranks before it is killed."""
ENDING = (signal.SIGTERM, signal.SIGHUP)


def start(words: Sequence[str], log: Path) -> int:
    """Run a command to its end with its output in ``log``; return its status.

    Whatever ends the wait, such as Ctrl-C, ends the command too.

    Raises:
        UsageError: there is no such launcher.
    """
    with log.open("wb") as output:
        try:
            # Inheritable files, of which there is but the lock of ``alone``, stay open in it.
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                close_fds=False,
            )
        except OSError as error:
            raise UsageError(
                f"cannot start '{words[0]}': {reason(error)}; name a launcher with --launcher."
            ) from None
        try:
            return process.wait()
        except BaseException:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the launcher end its ranks: killed at once it would leave them behind."""
    process.terminate()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Keep other campaigns from starting runs whose files are in ``directory``.

    Launchers inherit the lock, so that it also holds while one outlives a campaign that was killed
    outright.

    Raises:
        UsageError: another one is at work there.
    """
    with (directory / ".lock").open("w") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            durable.lock(lock.fileno())  # without effect on a file system without locks
        except BlockingIOError:
            raise UsageError(
                f"another command is starting runs in '{directory}', or its last run has not "
                "ended: wait for it, or choose another directory with --out."
            ) from None
        yield


@contextmanager
def orderly_end() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise SystemExit, so that a launcher is ended first."""

    def leave(number: int, _frame: object) -> NoReturn:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)

    # Under nohup a hang-up is ignored, and stays so.
    changed = [each for each in ENDING if signal.getsignal(each) is signal.SIG_DFL]
    for each in changed:
        signal.signal(each, leave)
    try:
        yield
    finally:
        for each in changed:
            signal.signal(each, signal.SIG_DFL)
