"""What the agent's loop needs of a method, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Rounds
    from sundsbo_mpi.tasks.base import Task


Lengths: TypeAlias = "list[list[int]]"
"""The lengths of the vectors that travel together, for each round of an iteration."""


class State(NamedTuple):
    """What an agent carries from one iteration to the next beside its variables."""

    estimate: Any
    """Memory of the estimator."""
    memory: dict[str, Any]
    """Memory of each variable's technique."""
    D_hat: Variables
    """D̂^k of the iteration just done; zero before the first.  An agent empties it as it goes on,
    unless it may come back."""


class Oracles(NamedTuple):
    """What an agent evaluates: gradients of f and g, Hessian- and Jacobian-vector products of g.

    A product differentiates a gradient of g, which is counted beside it, once if both share it.
    """

    f: int = 0
    g: int = 0
    hvp: int = 0
    jvp: int = 0

    def times(self, m: int) -> Oracles:
        """Return the price of ``m`` such evaluations."""
        return Oracles(*(m * calls for calls in self))


class Algorithm(Protocol):
    """What the agent's loop needs of a method."""

    @property
    def lambda_min(self) -> float:
        """The eigenvalues of all W_k, then symmetric, must exceed this; any W_k if -inf."""
        ...

    @property
    def rounds(self) -> int:
        """Communication rounds per iteration."""
        ...

    @property
    def vectors(self) -> int:
        """Vectors sent to each neighbour per iteration."""
        ...

    @property
    def oracles(self) -> Oracles:
        """What an agent evaluates per iteration, on minibatches."""
        ...

    def start(self, task: Task) -> tuple[Variables, State]:
        """Return w^0 and the state before the first iteration."""
        ...

    def lengths(self, w: Variables, state: State) -> Lengths:
        """Return what travels in each round of an iteration that begins with w and the state.

        Which variables move may be the task's choice, as in single-level training; once it has
        begun, the keys of the state's memory alone tell them.
        """
        ...

    def anew(self, w: Variables, state: State) -> State:
        """Return the state with which to go on from w over other links than before.

        What the techniques conserve is conserved by these links, so they begin again at w; what
        the estimators remember of the agent's own directions stays.
        """
        ...

    def step(
        self, task: Task, k: int, w: Variables, state: State
    ) -> Rounds[tuple[Variables, State]]:
        """Do iteration k of one agent, yielding what must be averaged over its neighbours."""
        ...

    def defect(
        self, k: int, w_next: Variables, w: Variables, state: State
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """After iteration k: what must average to zero over the agents, and its scale."""
        ...

    @property
    def penalty(self) -> Callable[[int], Penalty | None]:
        """The function k -> μ_k and γ, or None for a method without a Moreau-envelope penalty."""
        ...


def no_penalty(_k: int) -> None:
    """Stand for the penalty of a method that has none."""
