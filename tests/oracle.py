"""The oracle: every method as a recursion on dense matrices, written from its formulas.

Row i of X of shape (n, d) is agent i's vector and W @ X one round of averages.  The gradients are
written by hand from the formulas that the tasks print.  Nothing is imported from the package, and
nothing here looks like it: whole histories are kept and indexed by k as on paper.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

VARIABLES = ("x", "y", "theta")


class Toy:
    """f_i = |a_i x - y2|^2/2 + |b_i y1 - e|^2/2, g_i = |b_i y1|^2/2 - a_i x' y1."""

    def __init__(self, agents, entries=10):
        i = np.arange(agents)[:, None]
        self.a, self.b, self.N = 1 + 0.1 * i, 1 + 0.05 * i, entries
        self.d_x, self.d_y = entries, 2 * entries

    def f_x(self, X, Y):
        return self.a * (self.a * X - Y[:, self.N :])

    def f_y(self, X, Y):
        return np.hstack([self.b * (self.b * Y[:, : self.N] - 1), Y[:, self.N :] - self.a * X])

    def g_x(self, X, Y):
        return -self.a * Y[:, : self.N]

    def g_y(self, X, Y):
        return np.hstack([self.b**2 * Y[:, : self.N] - self.a * X, np.zeros_like(X)])


class Quadratic:
    """f_i = (x-s_i)'R_i(x-s_i)/2 + (y-t_i)'Q_i(y-t_i)/2, g_i = y'A_i y/2 - y'(B_i x + c_i).

    Every quantity is (common + h own_i) / sqrt(1 + h^2) of normal draws, drawn in the order R, Q,
    A, B, s, t, c from generators that belong to the seed, and to the seed and the agent.
    """

    STREAM = 7

    def __init__(self, agents, seed, d_x=5, d_y=8, h=1.0):
        self.d_x, self.d_y = d_x, d_y
        drawn = [self._draw(seed, agent, h) for agent in range(agents)]
        self.R, self.Q, self.A, self.B, self.s, self.t, self.c = (
            np.array(values) for values in zip(*drawn, strict=True)
        )

    def _draw(self, seed, agent, h):
        common, own = (
            np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
            for key in ((self.STREAM,), (self.STREAM, agent))
        )
        d_x, d_y = self.d_x, self.d_y
        shapes = ((d_x, d_x), (d_y, d_y), (d_y, d_y), (d_y, d_x), (d_x,), (d_y,), (d_y,))
        R, Q, A, B, s, t, c = (
            (common.standard_normal(shape) + h * own.standard_normal(shape)) / np.sqrt(1 + h * h)
            for shape in shapes
        )
        R, Q, A = (np.eye(len(M)) + M @ M.T / len(M) for M in (R, Q, A))
        return R, Q, A, B / np.sqrt(d_x), s, t, c

    def f_x(self, X, Y):
        return _each(self.R, X - self.s)

    def f_y(self, X, Y):
        return _each(self.Q, Y - self.t)

    def g_x(self, X, Y):
        return -_each(self.B.transpose(0, 2, 1), Y)

    def g_y(self, X, Y):
        return _each(self.A, Y) - _each(self.B, X) - self.c


def _each(M, V):
    """Row i of the result is M_i v_i."""
    return np.einsum("ijk,ik->ij", M, V)


class Noise(NamedTuple):
    """What is added to each agent's gradients of f and of g: two arrays (n, d_x + d_y)."""

    upper: np.ndarray
    lower: np.ndarray


def no_noise(_k):
    return Noise(np.zeros(()), np.zeros(()))


def directions(problem, S, mu, gamma, noise):
    """Eqs. 6a-6c for all agents at the points ``S`` (one array of rows per variable)."""
    X, Y, T = (S[v] for v in VARIABLES)
    f_x, f_y = _noisy(problem, problem.f_x(X, Y), problem.f_y(X, Y), noise.upper)
    g_x, g_y = _noisy(problem, problem.g_x(X, Y), problem.g_y(X, Y), noise.lower)
    h_x, h_y = _noisy(problem, problem.g_x(X, T), problem.g_y(X, T), noise.lower)
    return {
        "x": mu * f_x + g_x - h_x,
        "y": mu * f_y + g_y - (Y - T) / gamma,
        "theta": h_y + (T - Y) / gamma,
    }


def _noisy(problem, along_x, along_y, noise):
    if noise.ndim:
        return along_x + noise[:, : problem.d_x], along_y + noise[:, problem.d_x :]
    return along_x, along_y


def se(W, S, U, D, lam, k):
    return W(k) @ (S[k] - lam(k) * U[k])


def dgd(W, S, U, D, lam, k):
    return W(k) @ S[k] - lam(k) * U[k]


def gt(W, S, U, D, lam, k):
    D.append(W(k) @ (D[k - 1] + U[k] - U[k - 1]) if k else W(0) @ U[0])
    return W(k) @ (S[k] - lam(k) * D[k])


def semi_gt(W, S, U, D, lam, k):
    D.append(W(k) @ (D[k - 1] + U[k] - U[k - 1]) if k else W(0) @ U[0])
    return W(k) @ S[k] - lam(k) * D[k]


def non_atc_gt(W, S, U, D, lam, k):
    D.append(W(k) @ D[k - 1] + U[k] - U[k - 1] if k else U[0])
    return W(k) @ S[k] - lam(k) * D[k]


def extra(W, S, U, D, lam, k):
    """S[k+1] = W(k) S[k] - lam U[k] - the sum over j < k of (I - W(j)) / 2 S[j], differenced."""
    if k == 0:
        return W(0) @ S[0] - lam(0) * U[0]
    eye = np.eye(len(S[0]))
    turn = lam(k) * U[k] - lam(k - 1) * U[k - 1]
    return (eye + W(k)) @ S[k] - (eye + W(k - 1)) / 2 @ S[k - 1] - turn


def ed(W, S, U, D, lam, k):
    if k == 0:
        return W(0) @ (S[0] - lam(0) * U[0])
    return W(k) @ (2 * S[k] - S[k - 1] - (lam(k) * U[k] - lam(k - 1) * U[k - 1]))


def suda_extra(W, S, U, D, lam, k):
    if k == 0:
        return W(0) @ S[0] - lam(0) * U[0]
    return W(k) @ (2 * S[k] - S[k - 1]) - (lam(k) * U[k] - lam(k - 1) * U[k - 1])


NEXT = {
    "se": se,
    "dgd": dgd,
    "gt": gt,
    "semi-gt": semi_gt,
    "non-atc-gt": non_atc_gt,
    "extra": extra,
    "ed": ed,
    "suda-extra": suda_extra,
}

METHODS = {
    "sun-dsbo-se": ("se", "se", "se"),
    "sun-dsbo-dgd": ("dgd", "dgd", "dgd"),
    "sun-dsbo-gt": ("gt", "gt", "gt"),
    "sun-dsbo-semi-gt": ("semi-gt", "semi-gt", "semi-gt"),
    "sun-dsbo-non-atc-gt": ("non-atc-gt", "non-atc-gt", "non-atc-gt"),
    "sun-dsbo-extra": ("extra", "extra", "extra"),
    "sun-dsbo-ed": ("ed", "ed", "ed"),
    "sun-dsbo-ed-gt": ("ed", "gt", "gt"),
    "sun-dsbo-extra-gt": ("extra", "gt", "gt"),
}
"""The techniques of x, y and theta."""


class Setting(NamedTuple):
    """Everything that a method depends on beside the problem and the network.

    ``lam`` and ``rho`` map a variable, and ``mu`` is, a function of k.
    """

    techniques: tuple[str, str, str]
    lam: Mapping[str, Callable[[int], float]]
    mu: Callable[[int], float]
    gamma: float
    estimator: str = "minibatch"
    rho: Mapping[str, Callable[[int], float]] | None = None
    noise: Callable[[int], Noise] = no_noise


def over_time(W):
    """Return W as a function of k, which it is where the network changes."""
    return W if callable(W) else lambda _k: W


def trajectory(problem, W, start, iterations, setting):
    """Return the histories [S^0, ..., S^K] of every variable; ``start`` holds S^0 by variable.

    ``W`` is a matrix or, where the network changes, a function of k.
    """
    S = {v: [start[v]] for v in VARIABLES}
    U, D = ({v: [] for v in VARIABLES} for _ in range(2))
    for k in range(iterations):
        for v, estimate in _estimates(problem, S, U, k, setting).items():
            U[v].append(estimate)
        for v, name in zip(VARIABLES, setting.techniques, strict=True):
            S[v].append(NEXT[name](over_time(W), S[v], U[v], D[v], setting.lam[v], k))
    return S


def _estimates(problem, S, U, k, setting):
    noise = setting.noise(k)

    def at(j):
        return directions(problem, {v: S[v][j] for v in S}, setting.mu(j), setting.gamma, noise)

    D = at(k)
    if k == 0 or setting.estimator == "minibatch":
        return D
    rho = {v: setting.rho[v](k) for v in S}
    if setting.estimator == "momentum":
        return {v: (1 - rho[v]) * U[v][k - 1] + rho[v] * D[v] for v in S}
    old = at(k - 1)  # the old point and penalty, the new noise
    return {v: (1 - rho[v]) * (U[v][k - 1] + D[v] - old[v]) + rho[v] * D[v] for v in S}


def table(technique, W):
    """Return P, Q and R of the eliminated form S^{k+2} = P S^{k+1} - Q S^k - R (lam U)-difference.

    Where the step is constant, eliminating the tracker leaves two steps of memory, starting with
    S^1 = W S^0 - lam R U^0.
    """
    eye = np.eye(len(W))
    return {
        "gt": (2 * W, W @ W, W @ W),
        "semi-gt": (2 * W, W @ W, W),
        "non-atc-gt": (2 * W, W @ W, eye),
        "extra": (eye + W, (eye + W) / 2, eye),
        "ed": (2 * W, W, W),
        "suda-extra": (2 * W, W, eye),
    }[technique]


def eliminated(problem, W, start, iterations, setting):
    """Return what ``trajectory`` does, by the eliminated form; constant steps, exact gradients."""
    S = {v: [start[v]] for v in VARIABLES}
    before = None
    for k in range(iterations):
        here = {v: S[v][k] for v in VARIABLES}
        U = directions(problem, here, setting.mu(k), setting.gamma, no_noise(k))
        for v, name in zip(VARIABLES, setting.techniques, strict=True):
            P, Q, R = table(name, W)
            lam = setting.lam[v](0)
            if before is None:
                S[v].append(W @ S[v][0] - lam * R @ U[v])
            else:
                S[v].append(P @ S[v][k] - Q @ S[v][k - 1] - lam * R @ (U[v] - before[v]))
        before = U
    return S


def centralised(problem, start, iterations, setting):
    """Return the histories of plain descent s - lam U along the agents' mean direction."""
    S = {v: [start[v].mean(axis=0, keepdims=True)] for v in VARIABLES}
    for k in range(iterations):
        here = {v: np.broadcast_to(S[v][k], start[v].shape) for v in VARIABLES}
        U = directions(problem, here, setting.mu(k), setting.gamma, setting.noise(k))
        for v in VARIABLES:
            S[v].append(S[v][k] - setting.lam[v](k) * U[v].mean(axis=0))
    return S


def penalised_point(problem, agents, mu, gamma):
    """Return x, y and theta where the agents' mean direction vanishes.

    The mean direction is affine in (x, y, theta), so its values at 0 and at the unit vectors
    give the linear system.
    """
    cuts = np.cumsum([problem.d_x, problem.d_y])
    size = cuts[-1] + problem.d_y

    def mean(point):
        rows = [np.tile(part, (agents, 1)) for part in np.split(point, cuts)]
        D = directions(problem, dict(zip(VARIABLES, rows, strict=True)), mu, gamma, no_noise(0))
        return np.concatenate([D[v].mean(axis=0) for v in VARIABLES])

    at_zero = mean(np.zeros(size))
    matrix = np.column_stack([mean(unit) - at_zero for unit in np.eye(size)])
    return dict(zip(VARIABLES, np.split(np.linalg.solve(matrix, -at_zero), cuts), strict=True))
