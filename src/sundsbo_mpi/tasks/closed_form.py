"""Solutions of quadratic bilevel problems and of their penalised form, by linear algebra."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

LARGEST_WEIGHT = 1e100
"""Of a term of the penalised function; the squares of such numbers are still finite."""


@dataclass(frozen=True)
class Form:
    """The function q(v) = v' H v / 2 - h' v + c of v = (x, y), with H symmetric."""

    hessian: Array
    linear: Array
    constant: float = 0.0


def mean(forms: Sequence[Form]) -> Form:
    """Return the average of quadratic functions."""
    return Form(
        np.mean([form.hessian for form in forms], axis=0),
        np.mean([form.linear for form in forms], axis=0),
        float(np.mean([form.constant for form in forms])),
    )


def smoothness(lower: Form, d_x: int) -> float:
    """Return L2, the largest |eigenvalue| of the Hessian of G(x, .)."""
    return float(np.abs(np.linalg.eigvalsh(lower.hessian[d_x:, d_x:])).max())


def solutions(
    upper: Form, lower: Form, d_x: int, *, mu: float | None, gamma: float | None
) -> dict[str, tuple[Array, Array]]:
    """Return x and y of the bilevel solution and of the penalised one at (mu, gamma), if given."""
    found = {"bilevel": bilevel_solution(upper, lower, d_x)}
    if mu is not None and gamma is not None:
        found["penalised"] = penalised_solution(upper, lower, d_x, mu=mu, gamma=gamma)
    return found


def bilevel_solution(upper: Form, lower: Form, d_x: int) -> tuple[Array, Array]:
    """Solve min over (x, y) of F(x, y) subject to the gradient of G in y being zero.

    For convex G(x, .) that is the bilevel problem, taken optimistically where y is not unique.
    With [A b] the rows of G's Hessian and linear part that belong to y, (x, y) and a multiplier z
    solve P v + A' z = p and A v = b.

    Args:
        upper: F, whose minimiser on the lower level's solutions must be unique.
        lower: G.
        d_x: Length of x; the rest of v is y.
    """
    rows, target = lower.hessian[d_x:], lower.linear[d_x:]
    d_y = len(rows)
    system = np.block([[upper.hessian, rows.T], [rows, np.zeros((d_y, d_y))]])
    # Least squares: the multiplier is not unique where G does not depend on part of y.
    solution: Array = np.linalg.lstsq(system, np.concatenate([upper.linear, target]))[0]
    return solution[:d_x], solution[d_x : d_x + d_y]


def penalised_solution(
    upper: Form, lower: Form, d_x: int, *, mu: float, gamma: float
) -> tuple[Array, Array]:
    """Solve min over (x, y), max over theta of the penalised saddle function, for x and y.

    That function is mu F(x, y) + G(x, y) - G(x, theta) - |theta - y|^2 / (2 gamma); its gradient
    is linear in (x, y, theta), and the solution is where it vanishes.

    Args:
        upper: F.
        lower: G.
        d_x: Length of x; the rest of v is y.
        mu: Weight of the upper level.
        gamma: Parameter of the proximal term; infinity leaves it out.

    Raises:
        UsageError: mu or 1/gamma is so large that the saddle function's numbers overflow.
    """
    d = len(upper.linear)
    d_y = d - d_x
    matrix = np.zeros((d + d_y, d + d_y))
    right = np.zeros(d + d_y)
    if mu > LARGEST_WEIGHT or gamma < 1 / LARGEST_WEIGHT:
        raise UsageError(
            f"the penalised problem with mu = {mu:g} and gamma = {gamma:g} has no solution that "
            f"numbers can hold: expected mu of at most {LARGEST_WEIGHT:g} and gamma of at least "
            f"{1 / LARGEST_WEIGHT:g}; choose a weaker penalty."
        )
    matrix[:d, :d] = mu * upper.hessian + lower.hessian
    right[:d] = mu * upper.linear + lower.linear
    x_theta = np.r_[:d_x, d : d + d_y]
    matrix[np.ix_(x_theta, x_theta)] -= lower.hessian
    right[x_theta] -= lower.linear
    identity: Array = np.eye(d_y) / gamma
    matrix[d_x:, d_x:] -= np.block([[identity, -identity], [-identity, identity]])
    # Least squares: without the proximal term, theta is not unique where G is merely convex.
    solution: Array = np.linalg.lstsq(matrix, right)[0].astype(np.float64)
    return solution[:d_x], solution[d_x:d]
