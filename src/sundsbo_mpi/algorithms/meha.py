"""MEHA: the centralised, deterministic ancestor of SUN-DSBO, for one agent alone.

    θ <- θ - λ_θ (g_y(x, θ) + (θ - y)/γ)
    y <- y - λ_y (μ_k f_y(x, y) + g_y(x, y) - (y - θ)/γ)
    x <- x - λ_x (μ_k f_x(x, y) + g_x(x, y) - g_x(x, θ))

with μ_k = μ_0 (1 + k)^-p.  Nothing is sent: this is the centralised reference.

Source: Liu, Liu, Yao, Zeng and Zhang, 2024, arXiv 2405.09927.  In its letters, γ_1 is 1/γ here
and c_k = c_0 (k + 1)^p is 1/μ_k, so ``mu0`` is 1/c_0.

Differences from the source:
    1. It is deterministic; here f and g are those of the batch of the iteration, the same
       batch for the three updates.
    2. Projections onto the sets of x and y are left out: both are unconstrained.
    3. The order of the updates is that of its authors' toolbox; the paper itself was not consulted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from sundsbo_mpi.algorithms.base import Horizon, steps
from sundsbo_mpi.algorithms.moreau import MoreauOptions, begin
from sundsbo_mpi.composition import Composed, Oracles
from sundsbo_mpi.composition.directions import gradient, leaf
from sundsbo_mpi.composition.estimators import Variables, minibatch
from sundsbo_mpi.composition.staged import Staged
from sundsbo_mpi.composition.techniques import ALONE
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.tasks.base import Task

    Part: TypeAlias = Callable[[Task, Variables, Any, int], Tensor]


@dataclass(frozen=True)
class MehaOptions(MoreauOptions):
    """The options of MEHA, in the letters of SUN-DSBO."""

    p: float = 0.25


def meha(options: MehaOptions, horizon: Horizon) -> Staged:
    """MEHA: θ, then y at the new θ, then x at the new θ and y; θ^0 = y^0.

    Raises:
        UsageError: there is more than one agent.
    """
    if horizon.agents != 1:
        raise UsageError(
            f"meha is centralised, but there are {horizon.agents} agents: start one rank with a "
            "topology of one agent, or take sun-dsbo-gt."
        )
    composed = partial(
        Composed,
        begin=begin,
        estimator=minibatch({}),
        step_sizes=steps(options, "x", "y", "theta", horizon=horizon),
        penalty=options.penalty,
    )
    parts = _parts(options)
    prices = {"theta": Oracles(g=1), "y": Oracles(f=1, g=1), "x": Oracles(f=1, g=2)}
    return Staged(
        tuple(
            composed(direction=_descent(v, parts[v]), techniques={v: ALONE}, price=price)
            for v, price in prices.items()
        )
    )


def _parts(options: MehaOptions) -> dict[str, Part]:
    """Return, for each variable, the part of the saddle function that it descends on."""

    def of_theta(task: Task, w: Variables, xi: Any, _k: int) -> Tensor:
        return task.lower(w["x"], w["theta"], xi) + _distance(w) / (2 * options.gamma)

    def of_y(task: Task, w: Variables, xi: Any, k: int) -> Tensor:
        x, y = w["x"], w["y"]
        mu, gamma = options.penalty(k)
        return mu * task.upper(x, y, xi) + task.lower(x, y, xi) - _distance(w) / (2 * gamma)

    def of_x(task: Task, w: Variables, xi: Any, k: int) -> Tensor:
        x, y = w["x"], w["y"]
        gap = task.lower(x, y, xi) - task.lower(x, w["theta"], xi)
        return options.penalty(k).mu * task.upper(x, y, xi) + gap

    return {"theta": of_theta, "y": of_y, "x": of_x}


def _distance(w: Variables) -> Tensor:
    return (w["theta"] - w["y"]).square().sum()


def _descent(variable: str, part: Part) -> Callable[[Task, Variables, Any, int], Variables]:
    """Make a direction of the gradient of ``part`` in one variable."""

    def direction(task: Task, w: Variables, xi: Any, k: int) -> Variables:
        at = w | {variable: leaf(w[variable])}
        (D,) = gradient(part(task, at, xi, k), at[variable])
        return {variable: D}

    return direction
