"""The table of methods, and which of them may mix with which weights.

Three of them, all below in METHODS:

    method             direction   estimator                 technique of x, y, θ
    sun-dsbo-se        sun         minibatch|momentum|storm  se, se, se
    sun-dsbo-gt        sun         minibatch|momentum|storm  gt, gt, gt
    sun-dsbo-ed-gt     sun         minibatch|momentum|storm  ed, gt, gt

A method that does not fit the composition is any object with the members of
``composition.Algorithm``.  Adding a method is one function and its line in METHODS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from sundsbo_mpi.algorithms import sun_dsbo
from sundsbo_mpi.algorithms.base import Horizon, Method, MethodOptions
from sundsbo_mpi.algorithms.sun_dsbo import SunOptions
from sundsbo_mpi.composition import Algorithm, Penalty
from sundsbo_mpi.errors import unknown

__all__ = [
    "METHODS",
    "Horizon",
    "Method",
    "MethodOptions",
    "SunOptions",
    "by_default",
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


def is_safe(algorithm: Algorithm, lambda_min: float) -> bool:
    """Say whether a method may mix with weights whose smallest eigenvalue is ``lambda_min``."""
    return lambda_min > algorithm.lambda_min + MARGIN


def safe_for(lambda_min: float) -> dict[str, bool]:
    """Say of each method whether it is safe for weights with this smallest eigenvalue."""
    return {name: is_safe(by_default(entry), lambda_min) for name, entry in METHODS.items()}


def gamma_remark(penalty: Penalty | None, lipschitz: float) -> tuple[str, ...]:
    """Say so if a finite γ is not below 1/(2 L2), as the paper's theorems assume; L2 may be NaN."""
    if penalty is None or math.isinf(penalty.gamma) or not 2 * lipschitz * penalty.gamma >= 1:
        return ()
    return (
        f"outside the theorems' assumptions: gamma = {penalty.gamma:g} is not below 1/(2 L2) = "
        f"{1 / (2 * lipschitz):.3g}",
    )
