"""The word that all agents exchange in every iteration: go on, or stop together and why.

A word is one integer, and the smallest of the agents' words holds for all of them: ``GO_ON`` is the
largest, the reasons to stop (``Stop``) come next, and everything below them tells where the numbers
of some agent ceased to be finite (see ``health``), which so wins over a mere wish to stop.

The words of iteration k are compared while iteration k + 1 runs, so that nobody waits for them, and
take effect on all agents at the end of iteration k + 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sundsbo_mpi.comm.tally import Tally

GO_ON = 2**62
WORD_BYTES = 8


STOPPED_STATUS = 85
"""Of a program that stopped at request and can go on: schedulers' scripts know it."""


class Stop(IntEnum):
    """Why the agents stop although their numbers are fine."""

    WALLTIME = GO_ON - 1

    @property
    def sentence(self) -> str:
        """Say why, for people."""
        return {Stop.WALLTIME: "the time given by --max-walltime is over"}[self]


class Control:
    """One agent's side of the exchange of words.

    Args:
        tally: All agents.
        deadline: The ``time.monotonic`` from which this agent asks to stop.
    """

    def __init__(self, tally: Tally, deadline: float = math.inf) -> None:
        self._tally, self._deadline = tally, deadline
        self._asked = GO_ON
        self._finish: Callable[[], int] | None = None
        self.words = 0
        """How many this agent has sent; each has WORD_BYTES bytes."""

    def ask(self, reason: Stop) -> None:
        """Ask all agents to stop, from the next word on; local."""
        self._asked = min(self._asked, reason)

    def start(self, word: int) -> None:
        """Send the agent's word, or its wish to stop; ``finish`` must follow.  Collective."""
        if time.monotonic() >= self._deadline:
            self.ask(Stop.WALLTIME)
        self._finish = self._tally.smallest_soon(min(word, self._asked))
        self.words += 1

    def finish(self) -> int:
        """Return the smallest of the words sent last, or GO_ON before the first.  Collective."""
        if self._finish is None:
            return GO_ON
        agreed, self._finish = self._finish(), None
        return agreed
