"""The oracle of the AID methods: dense recursions for x, y and z, written from their formulas.

Row i of an array is agent i's vector.  The second derivatives of the quadratic are its matrices, so
no differentiation happens here; nothing is imported from the package.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import oracle

VARIABLES = ("x", "y", "z")

METHODS = {
    "sparkle-gt": ("gt", "gt", "gt"),
    "sparkle-extra": ("suda-extra", "suda-extra", "suda-extra"),
    "sparkle-ed": ("ed", "ed", "ed"),
    "sparkle-gt-extra": ("suda-extra", "gt", "gt"),
    "sparkle-gt-ed": ("ed", "gt", "gt"),
    "sparkle-extra-gt": ("gt", "suda-extra", "suda-extra"),
    "sparkle-extra-ed": ("ed", "suda-extra", "suda-extra"),
    "sparkle-ed-gt": ("gt", "ed", "ed"),
    "sparkle-ed-extra": ("suda-extra", "ed", "ed"),
    "d-soba": ("se", "se", "se"),
    "d-soba-fo": ("se", "se", "se"),
    "sldbo": ("non-atc-gt", "non-atc-gt", "non-atc-gt"),
}
"""The techniques of x, y and z."""


class Setting(NamedTuple):
    """What a method depends on beside the problem and the network.

    ``lam`` maps a variable to a function of k, as ``theta`` is one, the weight of the new u.
    """

    techniques: tuple[str, str, str]
    lam: Mapping[str, Callable[[int], float]]
    theta: Callable[[int], float] = lambda _k: 1.0
    gauss_seidel: bool = False
    radius: float = np.inf
    noise: Callable[[int], oracle.Noise] = oracle.no_noise


def v_of(problem, S, noise):
    """g_y."""
    along_x, along_y = problem.g_x(S["x"], S["y"]), problem.g_y(S["x"], S["y"])
    return oracle._noisy(problem, along_x, along_y, noise.lower)[1]


def p_of(problem, S, noise):
    """g_yy z - f_y, with A_i for g_yy."""
    f_x, f_y = problem.f_x(S["x"], S["y"]), problem.f_y(S["x"], S["y"])
    return oracle._each(problem.A, S["z"]) - oracle._noisy(problem, f_x, f_y, noise.upper)[1]


def u_of(problem, S, noise):
    """f_x - g_xy z, with -B_i' for g_xy."""
    f_x, f_y = problem.f_x(S["x"], S["y"]), problem.f_y(S["x"], S["y"])
    product = -oracle._each(problem.B.transpose(0, 2, 1), S["z"])
    return oracle._noisy(problem, f_x, f_y, noise.upper)[0] - product


PIECES = {"x": u_of, "y": v_of, "z": p_of}


def trajectory(problem, W, start, iterations, setting):
    """Return the histories [S^0, ..., S^K] of x, y and z; ``start`` holds x^0 and y^0.

    ``W`` is a matrix or, where the network changes, a function of k.
    """
    at = oracle.over_time(W)
    S = {"x": [start["x"]], "y": [start["y"]], "z": [np.zeros_like(start["y"])]}
    U, D = ({v: [] for v in VARIABLES} for _ in range(2))
    r = np.zeros_like(start["x"])
    own = dict(zip(VARIABLES, setting.techniques, strict=True))
    for k in range(iterations):
        noise, theta = setting.noise(k), setting.theta(k)
        for v in ("y", "z", "x"):
            newest = {w: history[-1 if setting.gauss_seidel else k] for w, history in S.items()}
            U[v].append(PIECES[v](problem, newest, noise))
            if v == "x":
                r = (1 - theta) * r + theta * U[v][k]
                U[v][k] = r
            S[v].append(oracle.NEXT[own[v]](at, S[v], U[v], D[v], setting.lam[v], k))
        size = np.linalg.norm(S["z"][-1], axis=1, keepdims=True)
        S["z"][-1] = np.where(size > setting.radius, S["z"][-1] * setting.radius / size, S["z"][-1])
    return S


def bilevel_point(problem):
    """Return x, y and z where the agents' means of u, v and p vanish.

    With means written without index, y = A^-1 (B x + c), A z = Q (y - t) and
    R (x - s) + B' z = 0, where each product of a matrix and a vector is averaged as one.
    """
    R, Q, A, B, c = (
        m.mean(axis=0) for m in (problem.R, problem.Q, problem.A, problem.B, problem.c)
    )
    Rs = oracle._each(problem.R, problem.s).mean(axis=0)
    Qt = oracle._each(problem.Q, problem.t).mean(axis=0)
    to_y = np.linalg.solve(A, B)
    y_at_0 = np.linalg.solve(A, c)
    x = np.linalg.solve(R + to_y.T @ Q @ to_y, Rs - to_y.T @ (Q @ y_at_0 - Qt))
    y = to_y @ x + y_at_0
    return {"x": x, "y": y, "z": np.linalg.solve(A, Q @ y - Qt)}
