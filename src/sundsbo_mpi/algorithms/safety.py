"""Which methods may mix with which weights, and where a run leaves their theory."""

from __future__ import annotations

import math
from fractions import Fraction

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.composition import Algorithm
from sundsbo_mpi.tasks.base import Penalty

MARGIN = 1e-9
"""λ_min(W) must exceed a method's bound by more than this."""


def bound_text(lambda_min: float) -> str:
    """Write what the smallest eigenvalue of W must exceed, as the fraction that it is."""
    return str(Fraction(lambda_min).limit_denominator(99))


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
        "techniques that need symmetric weights, such as EXTRA and ED, have no convergence theory "
        "on networks that change, and may diverge even where each matrix alone is safe; GT has",
    )


def large_gamma(penalty: Penalty | None, lipschitz: float) -> str:
    """Say so if a finite γ is not below 1/(2 L2), above which the problem of θ need not be convex.

    The paper's theorems assume it; L2 may be NaN.
    """
    if penalty is None or math.isinf(penalty.gamma) or not 2 * lipschitz * penalty.gamma >= 1:
        return ""
    return f"gamma = {penalty.gamma:.3g} is not below 1/(2 L2) = {1 / (2 * lipschitz):.3g}"
