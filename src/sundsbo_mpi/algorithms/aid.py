"""What methods of approximate implicit differentiation share: options, start, oracles.

They move x, y and an auxiliary z that follows the solution of g_yy z = f_y, along the directions u,
v and p of ``directions``; z^0 = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sundsbo_mpi.algorithms.base import Horizon, MethodOptions, schedules
from sundsbo_mpi.composition import Oracles
from sundsbo_mpi.composition.estimators import Estimator, Variables, moving_average
from sundsbo_mpi.composition.schedules import Scheduled

if TYPE_CHECKING:
    from sundsbo_mpi.tasks.base import Task

    Pieces: TypeAlias = Callable[[Task, Variables, Any], Variables]
    Direction: TypeAlias = Callable[[Task, Variables, Any, int], Variables]

ALL_AT_ONCE = Oracles(f=1, g=1, hvp=1, jvp=1)
"""The price of u, v and p at one point."""


@dataclass(frozen=True)
class AidOptions(MethodOptions):
    """The options of methods by approximate implicit differentiation.

    The defaults are those of the SUN-DSBO paper's comparison.

    Args:
        step_x: Step of x.
        step_y: Step of y.
        step_z: Step of z.
    """

    step_x: Scheduled = 0.03
    step_y: Scheduled = 0.03
    step_z: Scheduled = 0.03


@dataclass(frozen=True)
class AveragedOptions(AidOptions):
    """The options of methods that average the hypergradient.

    The default is that of the SUN-DSBO paper's comparison.

    Args:
        moving_average: Weight θ of the new hypergradient; 1 leaves the average out.
    """

    moving_average: Scheduled = 0.2


def begin(task: Task) -> Variables:
    """Return the task's start with z^0 = 0."""
    x, y = task.start()
    return {"x": x, "y": y, "z": y.new_zeros(y.shape)}


def averaged(options: AveragedOptions, horizon: Horizon) -> Estimator:
    """Average the direction of x as the options say; the others' is that of the batch."""
    return moving_average(schedules(options, {"x": "moving_average"}, horizon, most=1.0))


def unpenalised(pieces: Pieces) -> Direction:
    """Give directions without a penalty the form that a composition asks for."""
    return lambda task, w, xi, _k: pieces(task, w, xi)
