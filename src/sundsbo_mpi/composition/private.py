"""Private coordinates of x, which only one agent's data touch: they need not travel."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from sundsbo_mpi.composition.algorithm import Algorithm
from sundsbo_mpi.composition.composed import Composed
from sundsbo_mpi.composition.loops import Loop
from sundsbo_mpi.composition.staged import Staged
from sundsbo_mpi.composition.techniques import ALONE
from sundsbo_mpi.composition.wrapped import Wrapped
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.composition.schedules import Schedule


@dataclass(frozen=True)
class Private(Wrapped):
    """A method whose x is not sent: its coordinates are divided among the agents.

    The task's slice ``private`` says which coordinates of x its agent's data touch; the direction
    of every other agent vanishes there.  With exact averaging each coordinate would move along the
    agents' mean direction, which is 1/n of its owner's.  So on every agent

        x^{k+1} = x^k - (λ^k / n) D̂^k

    which moves the agent's own coordinates as averaging would, whatever the technique (where the
    step comes before the averaging, as in SE and GT, with W = 1 1^T / n to the letter; otherwise
    the mean over the agents), and leaves foreign ones at their start.
    """

    @classmethod
    def of(cls, algorithm: Algorithm, agents: int) -> Self:
        """Keep x from being sent.

        Raises:
            UsageError: the method is of a kind that does not move x by a technique of its own, or
                it mixes matrices of derivatives, by which a direction spreads over all coordinates.
        """
        return cls(_alone(algorithm, agents))


def _alone(algorithm: Algorithm | Loop, agents: int) -> Any:
    """Return the method with the technique of x, wherever it has one, replaced by ``ALONE``."""
    match algorithm:
        case Composed() if algorithm.matrices:
            raise UsageError(
                "algorithm.private is true, but the method mixes matrices of derivatives, and so "
                "all coordinates of x: leave it out, or take sun-dsbo-gt."
            )
        case Composed() if "x" in algorithm.techniques:
            own = algorithm.step_sizes["x"]
            return replace(
                algorithm,
                techniques={**algorithm.techniques, "x": ALONE},
                step_sizes={**algorithm.step_sizes, "x": _shared(own, agents)},
            )
        case Composed():
            return algorithm
        case Loop():
            return replace(algorithm, stage=_alone(algorithm.stage, agents))
        case Staged():
            return replace(algorithm, stages=tuple(_alone(s, agents) for s in algorithm.stages))
    raise UsageError(
        "algorithm.private is true, but the method is no bilevel method that moves x by itself: "
        "leave it out, or take sun-dsbo-gt."
    )


def _shared(step_size: Schedule, agents: int) -> Schedule:
    return lambda k: step_size(k) / agents
