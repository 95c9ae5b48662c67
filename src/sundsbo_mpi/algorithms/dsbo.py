"""DSBO: the Jacobian times the inverse Hessian, as a whole matrix, by decentralised tracking.

With Z of shape (d_x, d_y), in iteration k, every step with a batch of its own:

    T times   y <- W y - β g_y(x, y)
    N times   d <- W d + S - S_before,  Z <- W Z - η d,  where S = Z g_yy(x, y) - g_xy(x, y)
    once      x <- W x - α (f_x(x, y) - Z f_y(x, y))

with Z^0 = 0, so that Z follows g_xy g_yy^{-1} of the averaged lower level.  The tracker d
(``techniques.non_atc_gt_step``) starts in every iteration as the agent's own S; y and Z go on
from where the last iteration left them.  The variable ``z`` is Z row by row: its 2 N "vectors"
have d_x d_y numbers.  A product with a whole matrix counts as one of the N Hessian- and
Jacobian-vector products, but costs d_x of them.

Source: Chen, Huang and Ma, 2022, arXiv 2206.05670.

Differences from the source, of which the algorithm box could not be consulted:
    1. All equations are our reading; as far as we know its matrix is the
       transpose of Z.
    2. Z goes on from the last iteration, so that few inner steps suffice.
    3. y and x move without tracking, and x without a moving average.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.algorithms.aid import AidOptions, unpenalised
from sundsbo_mpi.algorithms.base import Horizon, steps
from sundsbo_mpi.composition import Composed, Oracles, directions
from sundsbo_mpi.composition.directions import gradient, leaf
from sundsbo_mpi.composition.estimators import Variables, minibatch
from sundsbo_mpi.composition.loops import Loop
from sundsbo_mpi.composition.matrix_directions import jacobian_residual, require_small
from sundsbo_mpi.composition.staged import Staged
from sundsbo_mpi.composition.techniques import technique
from sundsbo_mpi.options import require_integer

if TYPE_CHECKING:
    from sundsbo_mpi.tasks.base import Task


@dataclass(frozen=True)
class DsboOptions(AidOptions):
    """The options of DSBO.

    Args:
        inner_y: Number T of steps on y in an iteration.
        inner_z: Number N of steps on Z in an iteration.
    """

    inner_y: int = 5
    inner_z: int = 5

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        super().__post_init__()
        require_integer("algorithm.inner_y", self.inner_y, 1)
        require_integer("algorithm.inner_z", self.inner_z, 1)


def dsbo(options: DsboOptions, horizon: Horizon) -> Staged:
    """DSBO: y by T steps, the matrix Z by N steps of the JHIP oracle, then x.

    Raises:
        UsageError: when started on a task that is too large for it.
    """
    composed = partial(
        Composed,
        begin=partial(_begin, inner_z=options.inner_z),
        estimator=minibatch({}),
        step_sizes=steps(options, "x", "y", "z", horizon=horizon),
    )
    y = composed(
        direction=unpenalised(directions.lower_gradient),
        techniques={"y": technique("dgd")},
        price=Oracles(g=1),
    )
    z = composed(
        direction=unpenalised(jacobian_residual),
        techniques={"z": technique("non-atc-gt")},
        price=Oracles(g=1, hvp=1, jvp=1),
        matrices=True,
    )
    x = composed(
        direction=unpenalised(_hypergradient),
        techniques={"x": technique("dgd")},
        price=Oracles(f=1),
    )
    inner_y = Loop(y, options.inner_y)
    inner_z = Loop(z, options.inner_z, first_draw=1 + options.inner_y, afresh=True)
    return Staged((inner_y, inner_z, x))


def _begin(task: Task, inner_z: int) -> Variables:
    x, y = task.start()
    require_small("dsbo", x, (len(x), len(y)), times=inner_z)
    return {"x": x, "y": y, "z": x.new_zeros(len(x) * len(y))}


def _hypergradient(task: Task, w: Variables, xi: Any) -> Variables:
    """Return f_x - Z f_y."""
    x, y = leaf(w["x"]), leaf(w["y"])
    f_x, f_y = gradient(task.upper(x, y, xi), x, y)
    return {"x": f_x - w["z"].reshape(len(x), len(y)) @ f_y}
