"""The table of methods.

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

from collections.abc import Mapping
from functools import cache

from sundsbo_mpi.algorithms import (
    aid,
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
from sundsbo_mpi.algorithms.base import Horizon, Method, MethodOptions
from sundsbo_mpi.composition import Algorithm
from sundsbo_mpi.errors import unknown

__all__ = [
    "METHODS",
    "Horizon",
    "Method",
    "MethodOptions",
    "by_default",
    "method",
    "second_order",
]

METHODS: Mapping[str, Method] = {
    "sun-dsbo-se": Method(sun_dsbo.se, sun_dsbo.SunOptions, "N.C.", "BGD/BGD"),
    "sun-dsbo-dgd": Method(sun_dsbo.dgd, sun_dsbo.SunOptions, "-", "-"),
    "sun-dsbo-gt": Method(sun_dsbo.gt, sun_dsbo.SunOptions, "N.C.", "Free/Free"),
    "sun-dsbo-semi-gt": Method(sun_dsbo.semi_gt, sun_dsbo.SunOptions, "-", "-"),
    "sun-dsbo-non-atc-gt": Method(sun_dsbo.non_atc_gt, sun_dsbo.SunOptions, "-", "-"),
    "sun-dsbo-extra": Method(sun_dsbo.extra, sun_dsbo.SunOptions, "-", "-"),
    "sun-dsbo-ed": Method(sun_dsbo.ed, sun_dsbo.SunOptions, "-", "-"),
    "sun-dsbo-ed-gt": Method(sun_dsbo.ed_gt, sun_dsbo.SunOptions, "-", "-"),
    "sun-dsbo-extra-gt": Method(sun_dsbo.extra_gt, sun_dsbo.SunOptions, "-", "-"),
    "sparkle-gt": Method(sparkle.gt, sparkle.SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-extra": Method(sparkle.extra, sparkle.SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-ed": Method(sparkle.ed, sparkle.SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-gt-extra": Method(sparkle.gt_extra, sparkle.SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-gt-ed": Method(sparkle.gt_ed, sparkle.SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-extra-gt": Method(sparkle.extra_gt, sparkle.SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-extra-ed": Method(sparkle.extra_ed, sparkle.SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-ed-gt": Method(sparkle.ed_gt, sparkle.SparkleOptions, "S.C.", "BG*/Free"),
    "sparkle-ed-extra": Method(sparkle.ed_extra, sparkle.SparkleOptions, "S.C.", "BG*/Free"),
    "d-soba": Method(d_soba.second_order, aid.AveragedOptions, "S.C.", "BG*/BGD"),
    "d-soba-fo": Method(d_soba.first_order, aid.AveragedOptions, "-", "-"),
    "sldbo": Method(sldbo.sldbo, sldbo.SldboOptions, "-", "-"),
    "ma-dsbo": Method(ma_dsbo.ma_dsbo, ma_dsbo.MaDsboOptions, "S.C.", "BG/BGD"),
    "dsgda-gt": Method(dsgda.dsgda_gt, dsgda.DsgdaOptions, "S.C.", "BG/Free"),
    "mdbo": Method(neumann.mdbo, neumann.NeumannOptions, "-", "-"),
    "vrdbo": Method(neumann.vrdbo, neumann.NeumannOptions, "S.C.", "BG/Free"),
    "dsbo": Method(dsbo.dsbo, dsbo.DsboOptions, "S.C.", "BG/Free-"),
    "gossip-dsbo": Method(
        gossip_dsbo.gossip_dsbo, gossip_dsbo.GossipDsboOptions, "S.C.", "BG/Free-"
    ),
    "d-psgd": Method(single_level.d_psgd, single_level.SingleLevelOptions, "-", "-"),
    "gnsd": Method(single_level.gnsd, single_level.SingleLevelOptions, "-", "-"),
    "meha": Method(meha.meha, meha.MehaOptions, "-", "-"),
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


@cache
def second_order() -> tuple[str, ...]:
    """Name the methods that differentiate the lower loss twice."""
    prices = {name: by_default(entry).oracles for name, entry in METHODS.items()}
    return tuple(name for name, price in prices.items() if price.hvp or price.jvp)
