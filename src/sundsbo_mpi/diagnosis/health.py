"""Where an agent's numbers first ceased to be finite, as one integer that agents can compare."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sundsbo_mpi.errors import DivergedError
from sundsbo_mpi.ranks.control import GO_ON, STOPS

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables

MOST_SKIPS = 10
"""Iterations in a row that may be skipped: more of them are no accident."""


class Trouble(NamedTuple):
    """Numbers that are not finite, where they were first met."""

    variable: str
    agent: int
    k: int
    """The iteration."""
    of_point: bool
    """Whether the variable itself is not finite, rather than its direction."""

    @property
    def what(self) -> str:
        """Say whose numbers they are."""
        what = f"{self.variable} itself" if self.of_point else f"the direction of {self.variable}"
        return f"{what} on agent {self.agent}"


class NotFiniteError(DivergedError):
    """Numbers of some agent are not finite: the same ``trouble`` on all agents."""

    def __init__(self, trouble: Trouble, more: str = "") -> None:
        super().__init__(
            f"diverged: {trouble.what} was first not finite in iteration {trouble.k}; {more}"
        )
        self.trouble = trouble


class Health:
    """Remembers where the agent's numbers first stopped being finite.

    Args:
        agent: The agent's rank.
        agents: Number of agents.
        variables: In the order in which an iteration evaluates their directions: bad numbers travel
            with a variable that moves before others, so the first variable is blamed first.
    """

    def __init__(self, agent: int, agents: int, variables: tuple[str, ...]) -> None:
        self._agent, self._agents, self._variables = agent, agents, variables
        self._skips, self._next = 0, -1
        self.word = GO_ON
        """What the agent has to say in the control word: the smaller, the earlier the trouble."""

    def note_direction(self, k: int, D_hat: Variables) -> None:
        """Look at the agent's own directions of iteration k, from before any mixing."""
        self._note(2 * k, D_hat)

    def note_point(self, k: int, w: Variables) -> None:
        """Look at the point to which iteration k has led; a direction of k is blamed first."""
        self._note(2 * k + 1, w)

    def _note(self, moment: int, tensors: Variables) -> None:
        for place, v in enumerate(self._variables):
            if self.word == GO_ON and v in tensors and not _finite(tensors[v]):
                self.word = (moment * len(self._variables) + place) * self._agents + self._agent

    def found(self, agreed: int) -> Trouble | None:
        """Say what the smallest word of all agents means, if it is about their numbers."""
        if agreed >= STOPS.start:
            return None
        code, agent = divmod(agreed, self._agents)
        moment, place = divmod(code, len(self._variables))
        k, of_point = divmod(moment, 2)
        return Trouble(self._variables[place], agent, k, bool(of_point))

    def judge(self, agreed: int) -> None:
        """End the run if the smallest word of all agents is about their numbers.

        Raises:
            NotFiniteError: some agent has met a number that is not finite.
        """
        if trouble := self.found(agreed):
            raise NotFiniteError(trouble, "smaller steps may help.")

    def skip(self, trouble: Trouble) -> str:
        """Forget the trouble, its iteration having been undone; return what to say.

        All agents call it alike.

        Raises:
            NotFiniteError: the skipped iterations come one after the other, too many of them.
        """
        self._skips = self._skips + 1 if trouble.k == self._next else 1
        self._next, self.word = trouble.k + 1, GO_ON
        if self._skips > MOST_SKIPS:
            raise NotFiniteError(trouble, f"{MOST_SKIPS} before it were skipped, one by one.")
        return f"iteration {trouble.k} skipped: {trouble.what} was not finite"


def _finite(v: Tensor) -> bool:
    # A sum over a tensor that holds NaN or infinity is one of the two; it is cheaper than a mask,
    # and Python's isfinite of it than torch's, which is four operations.
    return math.isfinite(v.sum()) or bool(v.isfinite().all())
