"""Step I, the estimators: how an agent turns the directions of its batches into D̂^k.

An estimator sees the direction as a function ``at(k, w)``: the direction at the point w with the
penalty of iteration k, on the batch drawn in the current iteration.  ``rho`` maps each variable to
its schedule ρ^k; by convention ρ^0 = 1, so that D̂^0 is the minibatch direction whatever was
remembered.  ``moving_average`` is the exception: it starts from zero.  ``e.lerp(D, rho)`` is
(1 - rho) e + rho D in one pass over memory, and ``D.add(v, alpha=c)`` is D + c v.

Source: Table "More specific instances of SUN-DSBO", Step I, in the SUN-DSBO paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.schedules import Schedule

Variables: TypeAlias = "dict[str, Tensor]"
"""The variables of one agent, or one tensor of the same shape for each of them."""
At: TypeAlias = Callable[[int, Variables], Variables]


class Estimator(NamedTuple):
    """A way to estimate the direction, with explicit memory."""

    start: Callable[[Variables], Any]
    """w^0 -> the memory before the first iteration."""
    update: Callable[[At, int, Variables, Any], tuple[Variables, Any]]
    """(at, k, w^k, memory) -> (D̂^k, memory)."""
    evaluations: int = 1
    """How often ``update`` evaluates the direction."""


class StormMemory(NamedTuple):
    """The iterate, the iteration and the estimate of the last update."""

    w: Variables
    k: int
    D_hat: Variables


def minibatch(_rho: Mapping[str, Schedule]) -> Estimator:
    """D̂^k = D̆^k, the direction on the batch of iteration k."""
    return Estimator(start=lambda _w: (), update=lambda at, k, w, e: (at(k, w), e))


def momentum(rho: Mapping[str, Schedule]) -> Estimator:
    """D̂^k = (1 - ρ^k) D̂^{k-1} + ρ^k D̆^k.

    Differences from the paper:
        1. Its table has D̆^{k-1} in the last term, which would delay the direction by an iteration;
           the standard rule with D̆^k is used.
    """

    def update(at: At, k: int, w: Variables, e: Variables) -> tuple[Variables, Variables]:
        D = at(k, w)
        weight = _weights(rho, k)
        D_hat = {v: e[v].lerp(D[v], weight[v]) for v in w}
        return D_hat, D_hat

    return Estimator(start=_zeros, update=update)


def storm(rho: Mapping[str, Schedule]) -> Estimator:
    """D̂^k = D̆^k + (1 - ρ^k) (D̂^{k-1} - D̆^{k-1}), both D̆ on the batch of iteration k.

    D̆^{k-1} is the direction at the previous iterate with the previous penalty μ_{k-1}; two
    gradient evaluations per iteration.  The same as the paper's
    (1 - ρ^k) (D̂^{k-1} + D̆^k - D̆^{k-1}) + ρ^k D̆^k.  (Cutkosky and Orabona, 2019)

    Differences from the paper:
        1. It does not say on which batch D̆^{k-1} is taken; with the batch of iteration k-1 there
           would be no variance reduction, so the current one is used, as in Cutkosky and Orabona.
    """

    def update(at: At, k: int, w: Variables, e: StormMemory) -> tuple[Variables, StormMemory]:
        D, D_old = at(k, w), at(e.k, e.w)
        weight = _weights(rho, k)
        D_hat = {v: D[v].add(e.D_hat[v] - D_old[v], alpha=1 - weight[v]) for v in w}
        return D_hat, StormMemory(w, k, D_hat)

    return Estimator(lambda w: StormMemory(w, 0, _zeros(w)), update, evaluations=2)


def moving_average(theta: Mapping[str, Schedule]) -> Estimator:
    """D̂^k = r^{k+1} = (1 - θ^k) r^k + θ^k D̆^k with r^0 = 0, for the variables of ``theta``.

    The others' D̂^k is D̆^k.  Unlike ``momentum`` it starts from zero, so the first estimates are
    small; it belongs to methods with a hypergradient that is wrong at first (MA-SOBA: Chen, Xiao
    and Balasubramanian, 2023, arXiv 2306.12067), and is no choice of ``algorithm.estimator``.
    """

    def start(w: Variables) -> Variables:
        return _zeros({v: w[v] for v in theta})

    def update(at: At, k: int, w: Variables, r: Variables) -> tuple[Variables, Variables]:
        D = at(k, w)
        averaged = {v: r[v].lerp(D[v], weight(k)) for v, weight in theta.items()}
        return D | averaged, averaged

    return Estimator(start=start, update=update)


ESTIMATORS: Mapping[str, Callable[[Mapping[str, Schedule]], Estimator]] = {
    "minibatch": minibatch,
    "momentum": momentum,
    "storm": storm,
}


def _weights(rho: Mapping[str, Schedule], k: int) -> dict[str, float]:
    return {v: schedule(k) if k > 0 else 1.0 for v, schedule in rho.items()}


def _zeros(w: Variables) -> Variables:
    return {v: s.new_zeros(s.shape) for v, s in w.items()}
