"""The word that all agents exchange in every iteration: go on, or stop together and why.

A word is one integer, and the smallest of the agents' words holds for all of them: ``GO_ON`` is the
largest, the wish to keep a checkpoint (``SAVE``) comes next, then the reasons to stop (``Stop``),
and everything below them tells where the numbers of some agent ceased to be finite (see
``health``), which so wins over a mere wish.

The words of iteration k are compared while iteration k + 1 runs, so that nobody waits for them, and
take effect on all agents at the end of iteration k + 1, or some iterations later where there are so
many agents that words take several turns to be known to all.
"""

from __future__ import annotations

import math
import time
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.comm.words import Words

GO_ON = 2**62
SAVE = GO_ON - 1
RESERVE = 1.5
"""Set aside before the deadline, in checkpoints: the next one may take longer."""


STOPPED_STATUS = 85
"""Of a program that stopped at request and can go on: schedulers' scripts know it."""


class Stop(IntEnum):
    """Why the agents stop although their numbers are fine."""

    WALLTIME = GO_ON - 2
    SIGUSR1 = GO_ON - 3
    SIGUSR2 = GO_ON - 4
    SIGTERM = GO_ON - 5
    SIGINT = GO_ON - 6

    @property
    def sentence(self) -> str:
        """Say why, for people."""
        if self is Stop.WALLTIME:
            return "the time given by --max-walltime is over"
        return f"{self.name} was received"


STOPS = range(min(Stop), max(Stop) + 1)
"""All of them: they lie side by side."""


def stop_in(word: int) -> Stop | None:
    """Return the reason to stop that a word is, if it is one."""
    return Stop(word) if word in STOPS else None


class Control:
    """One agent's side of the exchange of words.

    Raises (``start``, ``finish``, ``settle`` and ``close``, where agents may be lost):
        MPI.Exception: one was.

    Args:
        tally: All agents.
        deadline: The ``time.monotonic`` at which this agent asks to stop, less ``RESERVE``
            checkpoints; the iterations until all know of it come on top.
        save_seconds: Seconds after which this agent wishes for a checkpoint.
    """

    def __init__(
        self, tally: Tally, deadline: float = math.inf, save_seconds: float = math.inf
    ) -> None:
        self._tally, self._deadline, self._save_seconds = tally, deadline, save_seconds
        self._saved = time.monotonic()
        self.saving = 0.0
        """Seconds that the slowest checkpoint took."""
        self._asked: int = GO_ON
        self._words: Words | None = None  # planned for the first one
        self._under_way = False
        self.turns, self.bytes = 0, 0
        """Turns in which the agents have exchanged words, and bytes that this one has sent."""

    def regroup(self, tally: Tally) -> None:
        """Speak with these from now on; what was said to others last is void."""
        self._tally, self._words, self._under_way = tally, None, False

    def ask(self, reason: Stop) -> None:
        """Ask all agents to stop, from the next word on; local."""
        self._asked = min(self._asked, reason)

    def start(self, word: int) -> None:
        """Send the agent's word, or its wish to stop; ``finish`` must follow.  Collective."""
        self._planned().start(self._own(word))
        self._under_way = True
        self._count(1)

    def note_saved(self, seconds: float) -> None:
        """Hear that a checkpoint was kept, which took some seconds; local."""
        self._saved = time.monotonic()
        self.saving = max(self.saving, seconds)

    def finish(self) -> int:
        """Return the smallest of the last words that are known to all, or GO_ON.  Collective."""
        if self._words is None or not self._under_way:
            return GO_ON
        self._under_way = False
        return min(GO_ON, self._words.finish())

    def settle(self, word: int) -> int:
        """Send the agent's word, and return the smallest once all agents know it.  Collective.

        It follows ``finish``; words that are not yet known to all are void: whoever still wishes
        something says so again.
        """
        words = self._planned()
        self._count(words.steps)
        return min(GO_ON, words.settle(self._own(word)))

    def _own(self, word: int) -> int:
        now = time.monotonic()
        if now >= self._deadline - RESERVE * self.saving:
            self.ask(Stop.WALLTIME)
        wish = SAVE if now - self._saved >= self._save_seconds else GO_ON
        return min(word, self._asked, wish)

    def _planned(self) -> Words:
        if self._words is None:
            self._words = self._tally.words()
        return self._words

    def _count(self, turns: int) -> None:
        self.turns += turns
        self.bytes += turns * self._planned().nbytes

    def close(self) -> None:
        """Hear the last word and let go of what was planned; collective where one is under way."""
        self.finish()
        if self._words is not None:
            self._words.close()
            self._words = None
