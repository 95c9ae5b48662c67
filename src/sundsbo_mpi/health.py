"""Where an agent's numbers first ceased to be finite, as one integer that agents can compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sundsbo_mpi.control import GO_ON, Stop
from sundsbo_mpi.errors import DivergedError

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables


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

    def judge(self, agreed: int) -> None:
        """Say what the smallest word of all agents means, if it is about their numbers.

        Raises:
            DivergedError: some agent has met a number that is not finite.
        """
        if agreed >= min(Stop):
            return
        code, agent = divmod(agreed, self._agents)
        moment, place = divmod(code, len(self._variables))
        k, is_point = divmod(moment, 2)
        v = self._variables[place]
        what = f"{v} itself" if is_point else f"the direction of {v}"
        raise DivergedError(
            f"diverged: {what} on agent {agent} was first not finite in iteration {k}; smaller "
            "steps (algorithm.step_x, step_y and so on) may help."
        )


def _finite(v: Tensor) -> bool:
    # A sum over a tensor that holds NaN or infinity is one of the two; it is cheaper than a mask.
    return bool(v.sum().isfinite()) or bool(v.isfinite().all())
