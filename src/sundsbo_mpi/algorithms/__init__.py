"""The table of methods, and which of them may mix with which weights.

Nearly all are compositions; the columns are direction, estimator, and technique of each variable:

    sun-dsbo-U-L   sun            minibatch|momentum|storm   x: U, y and θ: L (one name: all alike)
    sparkle-L-U    v, p, u        moving average of u        y and z: L, x: U, one after the other
    d-soba         v, p, u        moving average of u        se; d-soba-fo by finite differences
    sldbo          v, p, u        minibatch                  non-atc-gt, z projected
    ma-dsbo        v, p, u        moving average of u        y: dgd, z: non-atc-gt in loops; x: dgd
    dsbo           v, matrix, u   minibatch                  y: dgd, Z: non-atc-gt in loops; x: dgd
    gossip-dsbo    all averaged   minibatch                  x and y: dgd, averages: blended
    mdbo, vrdbo    v, series      momentum, storm            non-atc-gt, in part
    dsgda-gt       sun, γ = ∞     minibatch                  gt (y and z in a loop: inner_y > 1)
    d-psgd, gnsd   one loss       minibatch                  dgd, non-atc-gt
    meha           sun            minibatch                  none: one agent, θ, y, x in turn

A method that does not fit is any object with the members of ``composition.Algorithm``.  Adding a
method is one function and its line in METHODS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sundsbo_mpi.algorithms import (
    d_soba,
    dsbo,
    dsgda,
    gossip_dsbo,
    ma_dsbo,
    meha,
    neumann,
    single_level,
    sldbo,
    sparkle,
    sun_dsbo,
)
from sundsbo_mpi.algorithms.aid import AveragedOptions
from sundsbo_mpi.algorithms.base import Horizon, Method, MethodOptions
from sundsbo_mpi.algorithms.dsbo import DsboOptions
from sundsbo_mpi.algorithms.dsgda import DsgdaOptions
from sundsbo_mpi.algorithms.gossip_dsbo import GossipDsboOptions
from sundsbo_mpi.algorithms.ma_dsbo import MaDsboOptions
from sundsbo_mpi.algorithms.meha import MehaOptions
from sundsbo_mpi.algorithms.neumann import NeumannOptions
from sundsbo_mpi.algorithms.single_level import SingleLevelOptions
from sundsbo_mpi.algorithms.sldbo import SldboOptions
from sundsbo_mpi.algorithms.sparkle import SparkleOptions
from sundsbo_mpi.algorithms.sun_dsbo import SunOptions
from sundsbo_mpi.composition import Algorithm, Penalty
from sundsbo_mpi.composition.multi_step import MultiStep
from sundsbo_mpi.errors import unknown

__all__ = [
    "METHODS",
    "Horizon",
    "Method",
    "MethodOptions",
    "MultiStep",
    "SunOptions",
    "by_default",
    "changing_remark",
    "gamma_remark",
    "is_safe",
    "method",
    "safe_for",
]

METHODS: Mapping[str, Method] = {
    "sun-dsbo-se": Method(sun_dsbo.se, SunOptions, "N.C.", "BGD/BGD"),
    "sun-dsbo-dgd": Method(sun_dsbo.dgd, SunOptions, "-", "-"),
    "sun-dsbo-gt": Method(sun_dsbo.gt, SunOptions, "N.C.", "Free/Free"),
    "sun-dsbo-semi-gt": Method(sun_dsbo.semi_gt, SunOptions, "-", "-"),
    "sun-dsbo-non-atc-gt": Method(sun_dsbo.non_atc_gt, SunOptions, "-", "-"),
    "sun-dsbo-extra": Method(sun_dsbo.extra, SunOptions, "-", "-"),
    "sun-dsbo-ed": Method(sun_dsbo.ed, SunOptions, "-", "-"),
    "sun-dsbo-ed-gt": Method(sun_dsbo.ed_gt, SunOptions, "-", "-"),
    "sun-dsbo-extra-gt": Method(sun_dsbo.extra_gt, SunOptions, "-", "-"),
    "sparkle-gt": Method(sparkle.gt, SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-extra": Method(sparkle.extra, SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-ed": Method(sparkle.ed, SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-gt-extra": Method(sparkle.gt_extra, SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-gt-ed": Method(sparkle.gt_ed, SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-extra-gt": Method(sparkle.extra_gt, SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-extra-ed": Method(sparkle.extra_ed, SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-ed-gt": Method(sparkle.ed_gt, SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-ed-extra": Method(sparkle.ed_extra, SparkleOptions, "S.C.", "BG*/Free"),
    "d-soba": Method(d_soba.second_order, AveragedOptions, "S.C.", "BG*/BGD"),
    "d-soba-fo": Method(d_soba.first_order, AveragedOptions, "-", "-"),
    "sldbo": Method(sldbo.sldbo, SldboOptions, "-", "-"),
    "ma-dsbo": Method(ma_dsbo.ma_dsbo, MaDsboOptions, "S.C.", "BG/BGD"),
    "dsgda-gt": Method(dsgda.dsgda_gt, DsgdaOptions, "S.C.", "BG/Free"),
    "mdbo": Method(neumann.mdbo, NeumannOptions, "-", "-"),
    "vrdbo": Method(neumann.vrdbo, NeumannOptions, "S.C.", "BG/Free"),
    "dsbo": Method(dsbo.dsbo, DsboOptions, "S.C.", "BG/Free-"),
    "gossip-dsbo": Method(gossip_dsbo.gossip_dsbo, GossipDsboOptions, "S.C.", "BG/Free-"),
    "d-psgd": Method(single_level.d_psgd, SingleLevelOptions, "-", "-"),
    "gnsd": Method(single_level.gnsd, SingleLevelOptions, "-", "-"),
    "meha": Method(meha.meha, MehaOptions, "-", "-"),
}


def method(name: str) -> Method:
    """Look a method up by name.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in METHODS:
        raise unknown("algorithm", name, METHODS)
    return METHODS[name]


def by_default(entry: Method) -> Algorithm:
    """Build a method with its default options, to read off its price and what it needs."""
    return entry.build(entry.options(), Horizon(agents=1, iterations=1))


MARGIN = 1e-9
"""λ_min(W) must exceed a method's bound by more than this."""


def is_safe(algorithm: Algorithm, lambda_min: float | None) -> bool:
    """Say whether a method may mix with symmetric W_k that have no eigenvalue below this one.

    None stands for matrices that are not all symmetric.
    """
    if lambda_min is None:
        return algorithm.lambda_min == -math.inf
    return lambda_min > algorithm.lambda_min + MARGIN


def safe_for(lambda_min: float | None) -> dict[str, bool]:
    """Say of each method whether ``is_safe`` holds with its default options."""
    return {name: is_safe(by_default(entry), lambda_min) for name, entry in METHODS.items()}


def changing_remark(algorithm: Algorithm, *, steady: bool) -> tuple[str, ...]:
    """Say so if a method that asks for symmetric matrices is to mix with ones that change."""
    if steady or algorithm.lambda_min == -math.inf:
        return ()
    return (
        "EXTRA and ED have no convergence theory on networks that change, and may diverge even "
        "where each matrix alone is safe; GT has",
    )


def gamma_remark(penalty: Penalty | None, lipschitz: float) -> tuple[str, ...]:
    """Say so if a finite γ is not below 1/(2 L2), as the paper's theorems assume; L2 may be NaN."""
    if penalty is None or math.isinf(penalty.gamma) or not 2 * lipschitz * penalty.gamma >= 1:
        return ()
    return (
        f"outside the theorems' assumptions: gamma = {penalty.gamma:g} is not below 1/(2 L2) = "
        f"{1 / (2 * lipschitz):.3g}",
    )
