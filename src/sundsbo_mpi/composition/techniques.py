"""Steps II and III: how an agent uses its neighbours, one function per technique.

A technique is a generator.  ``yield v`` sends v to the neighbours and evaluates to
sum_j w_ij v_j; a yielded pair is sent as one message and evaluates to a pair.  Everything else is
local arithmetic, so the number of ``yield`` on the page is the number of communication rounds.

Notation, for one variable ◇ of one agent, such as x: ``s`` = ◇^k, ``D_hat`` = D̂^k the stochastic
direction at s, ``D`` = D^k the direction used, ``lam`` = λ^k its step size; all tensors are flat,
of shape (d,), and never changed in place.  ``s.sub(D, alpha=lam)`` is s - lam D in one pass over
memory, and ``Difference(s, lam, D)`` is the same computed straight into the message.
``gradient()`` returns D̂^k and is asked for as late as the technique allows.  A memory ``m`` holds
what iteration k needs of iteration k-1; its start makes the first iteration the right one without
a special case.

Sources: Table "More specific instances of SUN-DSBO" and its remarks (a), (b) in the SUN-DSBO paper;
the original references are named at each technique.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from sundsbo_mpi.errors import unknown
from sundsbo_mpi.outgoing import Difference

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Rounds: TypeAlias = Generator[Any, Any, T]
"""Yields what must travel, is sent its neighbourhood average, and returns a T."""
Gradient: TypeAlias = Callable[[], "Tensor"]


class Nothing(NamedTuple):
    """The memory of a technique that needs none."""


class Tracking(NamedTuple):
    """D^{k-1} and D̂^{k-1}, both zero before the first iteration."""

    D: Tensor
    D_hat: Tensor


class Extra(NamedTuple):
    """◇^{k-1}, its neighbourhood average, and λ^{k-1} D̂^{k-1}."""

    s: Tensor
    s_bar: Tensor
    lam_D_hat: Tensor


class Diffused(NamedTuple):
    """◇^{k-1} and λ^{k-1} D̂^{k-1}."""

    s: Tensor
    lam_D_hat: Tensor


def _no_memory(_s: Tensor) -> Nothing:
    return Nothing()


def _tracking(s: Tensor) -> Tracking:
    return Tracking(D=s.new_zeros(s.shape), D_hat=s.new_zeros(s.shape))


def _extra(s: Tensor) -> Extra:
    return Extra(s=s, s_bar=s, lam_D_hat=s.new_zeros(s.shape))


def _diffused(s: Tensor) -> Diffused:
    return Diffused(s=s, lam_D_hat=s.new_zeros(s.shape))


def _step_defect(
    s_next: Tensor, s: Tensor, lam: float, D_hat: Tensor, _m: Any
) -> tuple[Tensor, Tensor]:
    """The average over agents of ◇^{k+1} - ◇^k + λ^k D̂^k vanishes; its scale is λ^k D̂^k."""
    return s_next - s + lam * D_hat, lam * D_hat


def _tracking_defect(
    _s_next: Tensor, _s: Tensor, _lam: float, D_hat: Tensor, m: Tracking
) -> tuple[Tensor, Tensor]:
    """The average over agents of D^k - D̂^k vanishes; its scale is D̂^k."""
    return m.D - D_hat, D_hat


class Technique(NamedTuple):
    """One way to use the neighbours, with its price and what it asks of the weights."""

    start: Callable[[Tensor], Any]
    """◇^0 -> the memory before the first iteration."""
    step: Callable[[Tensor, Gradient, float, Any], Rounds[tuple[Tensor, Any]]]
    """(◇^k, gradient, λ^k, memory) -> generator returning (◇^{k+1}, memory)."""
    defect: Callable[[Tensor, Tensor, float, Tensor, Any], tuple[Tensor, Tensor]]
    """(◇^{k+1}, ◇^k, λ^k, D̂^k, memory) -> what averages to zero over the agents, and its scale."""
    rounds: int
    """Communication rounds per iteration."""
    vectors: int
    """Vectors of the variable's length sent to each neighbour per iteration."""
    lambda_min: float = -math.inf
    """It needs symmetric W_k with all eigenvalues above this; any W_k if it is -inf."""


def se_step(s: Tensor, gradient: Gradient, lam: float, _m: Nothing) -> Rounds[tuple[Tensor, Any]]:
    """Adapt then combine: ◇^{k+1} = W (◇^k - λ^k D̂^k).

    SUN-DSBO-SE, Algorithm 1; diffusion (Sayed, 2014).
    """
    s = yield Difference(s, lam, gradient())
    return s, Nothing()


def dgd_step(s: Tensor, gradient: Gradient, lam: float, _m: Nothing) -> Rounds[tuple[Tensor, Any]]:
    """Combine then adapt: ◇^{k+1} = W ◇^k - λ^k D̂^k.

    Non-ATC DGD, remark (a); D-PSGD (Lian et al., 2017).
    """
    s_bar = yield s
    return s_bar.sub(gradient(), alpha=lam), Nothing()


def gt_step(s: Tensor, gradient: Gradient, lam: float, m: Tracking) -> Rounds[tuple[Tensor, Any]]:
    """ATC gradient tracking, SUN-DSBO-GT, Algorithm 2 (Xu et al., 2015).

    D^k = W (D^{k-1} + D̂^k - D̂^{k-1});  ◇^{k+1} = W (◇^k - λ^k D^k);  D^{-1} = D̂^{-1} = 0.
    """
    D_hat = gradient()
    D = yield Difference(Difference(m.D, -1, D_hat), 1, m.D_hat)  # m.D + D_hat - m.D_hat
    s = yield Difference(s, lam, D)
    return s, Tracking(D, D_hat)


def semi_gt_step(
    s: Tensor, gradient: Gradient, lam: float, m: Tracking
) -> Rounds[tuple[Tensor, Any]]:
    """Semi-ATC gradient tracking (Di Lorenzo and Scutari, 2016); both vectors in one round.

    D^k = W (D^{k-1} + D̂^k - D̂^{k-1});  ◇^{k+1} = W ◇^k - λ^k D^k;  D^{-1} = D̂^{-1} = 0.
    """
    D_hat = gradient()
    D, s_bar = yield Difference(Difference(m.D, -1, D_hat), 1, m.D_hat), s  # as in gt_step
    return s_bar.sub(D, alpha=lam), Tracking(D, D_hat)


def non_atc_gt_step(
    s: Tensor, gradient: Gradient, lam: float, m: Tracking
) -> Rounds[tuple[Tensor, Any]]:
    """Non-ATC gradient tracking (Nedic, Olshevsky and Shi, 2017); both vectors in one round.

    D^k = W D^{k-1} + D̂^k - D̂^{k-1};  ◇^{k+1} = W ◇^k - λ^k D^k;  D^{-1} = D̂^{-1} = 0.
    """
    D_bar, s_bar = yield m.D, s
    D_hat = gradient()
    D = D_bar + D_hat - m.D_hat
    return s_bar.sub(D, alpha=lam), Tracking(D, D_hat)


def extra_step(s: Tensor, gradient: Gradient, lam: float, m: Extra) -> Rounds[tuple[Tensor, Any]]:
    """EXTRA (Shi, Ling, Wu and Yin, 2015), remark (b).

    ◇^{k+1} = ◇^k + W ◇^k - (I + W)/2 ◇^{k-1} - (λ^k D̂^k - λ^{k-1} D̂^{k-1}),
    ◇^1 = W ◇^0 - λ^0 D̂^0.  Where W changes, ◇^{k-1} goes with the W of its own iteration k - 1.

    Differences from the SUN-DSBO paper:
        1. It leaves the second matrix W̃ open; (I + W)/2 is the one of Shi et al.
        2. It writes λ^k (D̂^k - D̂^{k-1}); with a varying step that settles away from the solution,
           so the scaled directions are differenced.
    """
    s_bar = yield s
    lam_D_hat = lam * gradient()
    s_next = s + s_bar - (m.s + m.s_bar) / 2 - (lam_D_hat - m.lam_D_hat)
    return s_next, Extra(s, s_bar, lam_D_hat)


def ed_step(s: Tensor, gradient: Gradient, lam: float, m: Diffused) -> Rounds[tuple[Tensor, Any]]:
    """Exact Diffusion (Yuan, Ying, Zhao and Sayed, 2018), also D² (Tang et al., 2018).

    ◇^{k+1} = W (2 ◇^k - ◇^{k-1} - (λ^k D̂^k - λ^{k-1} D̂^{k-1})),  ◇^{-1} = ◇^0,  D̂^{-1} = 0.

    Differences from the sources:
        1. Yuan et al. mix with (I + W)/2; the SUN-DSBO paper with W, which needs the smallest
           eigenvalue of W above -1/3.  The option ``lazy`` gives the former.
        2. The scaled directions are differenced, as in ``extra_step``.
    """
    lam_D_hat = lam * gradient()
    s_next = yield Difference(Difference(2 * s, 1, m.s), 1, lam_D_hat - m.lam_D_hat)
    return s_next, Diffused(s, lam_D_hat)


def suda_extra_step(
    s: Tensor, gradient: Gradient, lam: float, m: Diffused
) -> Rounds[tuple[Tensor, Any]]:
    """EXTRA as SUDA (Alghunaim and Yuan, 2022, arXiv 2110.09993) writes it, with W twice.

    ◇^{k+1} = W (2 ◇^k - ◇^{k-1}) - (λ^k D̂^k - λ^{k-1} D̂^{k-1}),  ◇^1 = W ◇^0 - λ^0 D̂^0.

    With (I + W)/2 for W it is ``extra_step`` from the second step on, and then needs no bound.

    Differences from the source:
        1. The scaled directions are differenced, as in ``extra_step``.
    """
    s_bar = yield Difference(2 * s, 1, m.s)
    lam_D_hat = lam * gradient()
    return s_bar - (lam_D_hat - m.lam_D_hat), Diffused(s, lam_D_hat)


def alone_step(
    s: Tensor, gradient: Gradient, lam: float, _m: Nothing
) -> Rounds[tuple[Tensor, Any]]:
    """Descend without neighbours: ◇^{k+1} = ◇^k - λ^k D̂^k."""
    yield ()  # the messages of other variables go first
    return s - lam * gradient(), Nothing()


ALONE = Technique(_no_memory, alone_step, _step_defect, rounds=0, vectors=0)
"""The technique of a variable that is not sent; no user chooses it, so it stands in no table."""

TECHNIQUES: Mapping[str, Technique] = {
    "se": Technique(_no_memory, se_step, _step_defect, rounds=1, vectors=1),
    "dgd": Technique(_no_memory, dgd_step, _step_defect, rounds=1, vectors=1),
    "gt": Technique(_tracking, gt_step, _tracking_defect, rounds=2, vectors=2),
    "semi-gt": Technique(_tracking, semi_gt_step, _tracking_defect, rounds=1, vectors=2),
    "non-atc-gt": Technique(_tracking, non_atc_gt_step, _tracking_defect, rounds=1, vectors=2),
    "extra": Technique(_extra, extra_step, _step_defect, rounds=1, vectors=1, lambda_min=-1.0),
    "ed": Technique(_diffused, ed_step, _step_defect, rounds=1, vectors=1, lambda_min=-1 / 3),
    "suda-extra": Technique(
        _diffused, suda_extra_step, _step_defect, rounds=1, vectors=1, lambda_min=-1 / 3
    ),
}


def technique(name: str) -> Technique:
    """Look a technique up by name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in TECHNIQUES:
        raise unknown("technique", name, TECHNIQUES)
    return TECHNIQUES[name]
