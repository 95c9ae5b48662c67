"""The folder of a run's checkpoints: their names, which of them are whole, and who may write."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from sundsbo_mpi.checkpoint import manifest
from sundsbo_mpi.durable import lock, settle
from sundsbo_mpi.errors import UsageError, reason

KEPT = 2
LOCK = ".lock"
WHOLE = re.compile(r"iteration-(\d{9,})")
UNFINISHED = re.compile(r"\.iteration-\d{9,}\.[0-9a-f]{8}\.part")


def agent_file(checkpoint: Path, agent: int) -> Path:
    """Return where an agent's part of a checkpoint is."""
    return checkpoint / f"agent-{agent:05d}.h5"


class Folder:
    """The checkpoints of one run; used on rank 0 alone.

    Args:
        path: The folder, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    def is_at(self, other: str) -> bool:
        """Whether another path leads to the same folder, which need not exist."""
        with suppress(ValueError):  # of a zero byte, which no path has
            return os.path.realpath(self.path) == os.path.realpath(other)
        return False

    def newest_first(self) -> list[Path]:
        """Return the checkpoints that are whole, as far as their names and manifests tell."""
        with suppress(OSError):
            found = [
                (int(match[1]), entry)
                for entry in self.path.iterdir()
                if (match := WHOLE.fullmatch(entry.name)) and (entry / manifest.NAME).is_file()
            ]
            return [entry for _, entry in sorted(found, reverse=True)]
        return []

    def claim(self, *, resumed: bool, overwrite: bool) -> None:
        """Make the folder if need be, and keep other runs from writing in it.

        Raises:
            UsageError: it cannot be made or written, another run writes there, or it has
                checkpoints of another run that may not be replaced.
        """
        if self._lock is not None:
            return
        try:
            self.path.mkdir(exist_ok=True)
            self._take_lock()
            for leftover in self.path.iterdir():
                if UNFINISHED.fullmatch(leftover.name):
                    shutil.rmtree(leftover, ignore_errors=True)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"no checkpoints can be kept in '{self.path}': {reason(error)}; choose another "
                "--checkpoint."
            ) from None
        if resumed or not (found := self.newest_first()):
            return
        if not overwrite:
            raise UsageError(
                f"the folder '{self.path}' has checkpoints already: go on from them with "
                f"'sundsbo-mpi resume {self.path}', choose another --checkpoint, or pass "
                "--overwrite to replace them."
            )
        for old in found:
            self._remove(old)

    def _take_lock(self) -> None:
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            lock(self._lock)
        except BlockingIOError:
            self.release()
            raise UsageError(
                f"another run keeps its checkpoints in '{self.path}': wait for it to end, or "
                "choose another --checkpoint."
            ) from None
        except OSError:
            self.release()
            raise

    def begin(self, iteration: int) -> Path:
        """Return a new folder, hidden until ``publish``, for the checkpoint of an iteration.

        Raises:
            OSError: it cannot be made.
        """
        hidden = self._hidden(f"iteration-{iteration:09d}")
        hidden.mkdir()
        return hidden

    def _hidden(self, name: str) -> Path:
        return self.path / f".{name}.{secrets.token_hex(4)}.part"

    def _remove(self, checkpoint: Path) -> None:
        """Let a checkpoint count no more, and then remove it: a kill leaves none that is half."""
        with suppress(OSError):
            shutil.rmtree(checkpoint.rename(self._hidden(checkpoint.name)))

    def publish(self, hidden: Path) -> None:
        """Let a checkpoint count, all of whose files are on disk, and remove what it replaces.

        Raises:
            OSError: it cannot be renamed.
        """
        name = hidden.name.split(".")[1]
        settle(hidden)
        final = self.path / name
        if final.exists():  # of a run that went on from an older one and came here again
            self._remove(final)
        hidden.rename(final)
        settle(self.path)
        for old in self.newest_first()[KEPT:]:
            self._remove(old)

    def discard(self, hidden: Path) -> None:
        """Remove a checkpoint that did not become whole."""
        shutil.rmtree(hidden, ignore_errors=True)

    def release(self) -> None:
        """Let other runs write here."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
