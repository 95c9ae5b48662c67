"""Keeping checkpoints while a run goes on: all agents together, each its own file."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sundsbo_mpi.checkpoint import manifest
from sundsbo_mpi.checkpoint.folder import Folder, agent_file
from sundsbo_mpi.checkpoint.moment import write_moment
from sundsbo_mpi.comm.agreement import jointly, on_root
from sundsbo_mpi.errors import AgreedError, UsageError, reason

if TYPE_CHECKING:
    from sundsbo_mpi.checkpoint.manifest import Manifest
    from sundsbo_mpi.checkpoint.moment import Moment
    from sundsbo_mpi.comm.tally import Tally

T = TypeVar("T")


class Saver:
    """Keeps a run's checkpoints; ``save`` is collective.

    Args:
        tally: All agents.
        folder: Where they are kept; the same on all ranks, used on rank 0 alone.
        about: What a manifest says of the run, whichever the iteration; used on rank 0 alone.
        every: Iterations from one to the next; 0 where only the agents' words ask for one.
        note: Tells the user, on rank 0.
    """

    def __init__(
        self,
        tally: Tally,
        folder: Folder,
        about: Callable[[], Manifest],
        every: int,
        note: Callable[[str], None],
    ) -> None:
        self._tally, self._folder, self._about = tally, folder, about
        self._every, self._note = every, note
        self._last: int | None = None
        self.vital = True
        """Whether the next one must be kept, as there is none yet to go on from."""

    def due(self, done: int) -> bool:
        """Whether a checkpoint belongs after so many iterations, as all agents know."""
        return self._every > 0 and done % self._every == 0

    def save(self, moment: Moment) -> float:
        """Keep a checkpoint; return the seconds that it took.

        One that cannot be kept is told and does not end the run, since the one before is whole.

        Raises:
            AgreedError: it cannot be kept, and there is none before it.
        """
        began = time.monotonic()
        if moment.at.done == self._last:
            return 0.0
        try:
            self._save(moment)
        except AgreedError as error:
            sentence = f"no checkpoint at iteration {moment.at.done}: {error}"
            if self.vital:
                raise AgreedError(sentence) from error
            self._note(sentence)
            return 0.0
        self._last, self.vital = moment.at.done, False
        return time.monotonic() - began

    def _save(self, moment: Moment) -> None:
        hidden: Path = on_root(self._tally, lambda: self._tried(self._begin, moment.at.done))
        try:
            digest = jointly(self._tally, lambda: self._tried(self._write, hidden, moment))
            digests = self._tally.gather(digest)
            on_root(
                self._tally, lambda: self._tried(self._publish, hidden, moment.at.done, digests)
            )
        except BaseException:  # also the loss of an agent
            if self._tally.is_root:
                self._folder.discard(hidden)
            raise

    def _tried(self, work: Callable[..., T], *given: object) -> T:
        """Do file work; what the system says becomes the end of a sentence."""
        try:
            return work(*given)
        except OSError as error:
            raise UsageError(
                f"'{self._folder.path}' cannot take it: {reason(error)}; make room, or choose "
                "another --checkpoint."
            ) from error

    def _begin(self, done: int) -> Path:
        return self._folder.begin(done)

    def _write(self, hidden: Path, moment: Moment) -> str:
        with suppress(FileExistsError):
            hidden.mkdir()  # where the file system of this node does not show it yet
        return write_moment(agent_file(hidden, self._tally.agent), moment, self._tally.agent)

    def _publish(self, hidden: Path, done: int, digests: list[str]) -> None:
        for agent in range(self._tally.agents):
            if not agent_file(hidden, agent).is_file():
                raise UsageError(
                    f"the file that agent {agent} wrote in '{self._folder.path}' is not seen by "
                    "rank 0: choose a --checkpoint that all nodes share."
                )
        replace(self._about(), iteration=done, digests=digests).write(hidden / manifest.NAME)
        self._folder.publish(hidden)
