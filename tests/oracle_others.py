"""The oracle of the remaining baselines: dense recursions on the quadratic, one function a method.

Row i of an array is agent i's, and ``noise(k, draw)`` what its batches add to the gradients of f
and g.  Second derivatives are the matrices of the problem, inverses and series are written as such,
and the matrices that DSBO and Gossip-DSBO send keep their shape.  Nothing is imported from the
package.  Every function returns the histories [S^0, ..., S^K] by variable.
"""

import numpy as np
from oracle import _each


def no_noise(_k, _draw):
    return None


class At:
    """The derivatives of f_i and g_i at (X, Y) on the batches with this noise."""

    def __init__(self, problem, X, Y, noise):
        d = problem.d_x
        e, h = (np.zeros(()),) * 2 if noise is None else noise
        self.f_x = problem.f_x(X, Y) + (e[:, :d] if e.ndim else 0)
        self.f_y = problem.f_y(X, Y) + (e[:, d:] if e.ndim else 0)
        self.g_x = problem.g_x(X, Y) + (h[:, :d] if h.ndim else 0)
        self.g_y = problem.g_y(X, Y) + (h[:, d:] if h.ndim else 0)
        self.g_yy, self.g_xy = problem.A, -problem.B.transpose(0, 2, 1)


def mix(W, S):
    """Average over the neighbours, whatever the shape of an agent's share."""
    return np.tensordot(W, S, axes=1)


class Histories(dict):
    """The histories by variable; ``now`` are their ends, ``add`` lengthens them."""

    @property
    def now(self):
        return {v: rows[-1] for v, rows in self.items()}

    def add(self, **rows):
        for v, S in rows.items():
            self[v].append(S)
        return self


def begun(**rows):
    return Histories({v: [S] for v, S in rows.items()})


class Tracker:
    """Gradient tracking of one variable, adapt-then-combine or not."""

    def __init__(self, W, atc):
        self.W, self.atc, self.d, self.D = W, atc, None, None

    def __call__(self, S, d, lam):
        turn = d if self.d is None else d - self.d
        before = 0 if self.d is None else self.D
        self.d = d
        if self.atc:
            self.D = mix(self.W, before + turn)
            return mix(self.W, S - lam * self.D)
        self.D = (0 if self.D is None else mix(self.W, before)) + turn
        return mix(self.W, S) - lam * self.D


def dsgda_gt(problem, W, start, iterations, noise=no_noise, *, lam, nu, inner=1):
    """Descent in x and y, ascent in z on nu f(x, y) + g(x, y) - g(x, z)."""
    S = begun(x=start["x"], y=start["y"], z=start["y"])
    track = {v: Tracker(W, atc=True) for v in S}

    def D(x, y, z, e):
        above, below = At(problem, x, y, e), At(problem, x, z, e)
        return {
            "x": nu * above.f_x + above.g_x - below.g_x,
            "y": nu * above.f_y + above.g_y,
            "z": below.g_y,
        }

    for k in range(iterations):
        x, y, z = S.now.values()
        draws = [0] if inner == 1 else range(1, inner + 1)
        for draw in draws:
            d = D(x, y, z, noise(k, draw))
            y, z = track["y"](y, d["y"], lam["y"](k)), track["z"](z, d["z"], lam["z"](k))
        if inner > 1:
            d = D(x, y, z, noise(k, 0))
        S.add(x=track["x"](x, d["x"], lam["x"](k)), y=y, z=z)
    return S


def ma_dsbo(problem, W, start, iterations, noise=no_noise, *, lam, theta, T, N):
    """T steps on y, N tracked steps on the quadratic for z, x along a moving average."""
    S = begun(x=start["x"], y=start["y"], z=np.zeros_like(start["y"]))
    r = np.zeros_like(start["x"])
    for k in range(iterations):
        x, y, z = S.now.values()
        for t in range(T):
            y = W @ y - lam["y"](k) * At(problem, x, y, noise(k, 1 + t)).g_y
        track = Tracker(W, atc=False)
        for t in range(N):
            at = At(problem, x, y, noise(k, 1 + T + t))
            z = track(z, _each(at.g_yy, z) - at.f_y, lam["z"](k))
        at = At(problem, x, y, noise(k, 0))
        r = (1 - theta(k)) * r + theta(k) * (at.f_x - _each(at.g_xy, z))
        S.add(x=W @ x - lam["x"](k) * r, y=y, z=z)
    return S


def dsbo(problem, W, start, iterations, noise=no_noise, *, lam, T, N):
    """T steps on y, N tracked steps on Z g_yy = g_xy, one step on x."""
    n = len(start["x"])
    S = begun(x=start["x"], y=start["y"], z=np.zeros((n, problem.d_x, problem.d_y)))
    for k in range(iterations):
        x, y, Z = S.now.values()
        for t in range(T):
            y = W @ y - lam["y"](k) * At(problem, x, y, noise(k, 1 + t)).g_y
        track = Tracker(W, atc=False)
        for t in range(N):
            at = At(problem, x, y, noise(k, 1 + T + t))
            Z = track(Z, Z @ at.g_yy - at.g_xy, lam["z"](k))
        at = At(problem, x, y, noise(k, 0))
        S.add(x=W @ x - lam["x"](k) * (at.f_x - _each(Z, at.f_y)), y=y, z=Z)
    return S


def gossip_dsbo(problem, W, start, iterations, noise=no_noise, *, lam, beta, b, L):
    """Averages over time and neighbours of f_x, f_y, g_xy, b Hessians; Neumann series in them."""
    n, d_x, d_y = len(start["x"]), problem.d_x, problem.d_y
    shapes = {"f_x": (d_x,), "f_y": (d_y,), "g_xy": (d_x, d_y), "g_yy": (b, d_y, d_y)}
    zeros = {v: np.zeros((n, *shape)) for v, shape in shapes.items()}
    S = begun(x=start["x"], y=start["y"], **zeros)
    eye = np.eye(d_y)
    for k in range(iterations):
        now = S.now
        at = At(problem, now["x"], now["y"], noise(k, 0))
        Q = np.tile(eye, (n, 1, 1))
        for j in range(b):
            Q = eye + (eye - now["g_yy"][:, j] / L) @ Q
        u = now["f_x"] - _each(now["g_xy"], _each(Q / L, now["f_y"]))
        sample = vars(at) | {"g_yy": np.repeat(at.g_yy[:, None], b, axis=1)}
        S.add(
            x=W @ now["x"] - lam["x"](k) * u,
            y=W @ now["y"] - lam["y"](k) * at.g_y,
            **{v: (1 - beta(k)) * mix(W, now[v]) + beta(k) * sample[v] for v in shapes},
        )
    return S


def neumann(problem, W, start, iterations, noise=no_noise, *, lam, rho, eta, J, L, storm):
    """MDBO and VRDBO: local series, momentum or STORM, non-ATC tracking, part eta of the step."""
    S = begun(x=start["x"], y=start["y"])
    trackers = {v: Tracker(W, atc=False) for v in S}
    identity = np.eye(problem.d_y)
    series = np.array(
        [sum(np.linalg.matrix_power(identity - A / L, j) for j in range(J)) / L for A in problem.A]
    )

    def raw(j, e):
        at = At(problem, S["x"][j], S["y"][j], e)
        return {"x": at.f_x - _each(at.g_xy, _each(series, at.f_y)), "y": at.g_y}

    d = None
    for k in range(iterations):
        e = noise(k, 0)
        fresh = raw(k, e)
        if k == 0:
            d = fresh
        elif storm:
            old = raw(k - 1, e)
            d = {v: fresh[v] + (1 - rho(k)) * (d[v] - old[v]) for v in S}
        else:
            d = {v: (1 - rho(k)) * d[v] + rho(k) * fresh[v] for v in S}
        now = S.now
        half = {v: trackers[v](now[v], d[v], lam[v](k)) for v in S}
        S.add(**{v: now[v] + eta * (half[v] - now[v]) for v in S})
    return S


def single_level(problem, W, start, iterations, noise=no_noise, *, lam, trained, tracked):
    """Descent of f + g along the trained variables, as D-PSGD or, tracked, as GNSD."""
    S = begun(x=start["x"], y=start["y"])
    trackers = {v: Tracker(W, atc=False) for v in S}
    for k in range(iterations):
        now = S.now
        at = At(problem, now["x"], now["y"], noise(k, 0))
        d = {"x": at.f_x + at.g_x, "y": at.f_y + at.g_y}
        for v in S:
            if v not in trained:
                S.add(**{v: now[v]})
            elif tracked:
                S.add(**{v: trackers[v](now[v], d[v], lam[v](k))})
            else:
                S.add(**{v: W @ now[v] - lam[v](k) * d[v]})
    return S


def meha(problem, start, iterations, noise=no_noise, *, lam, mu, gamma):
    """One agent: theta, then y, then x, each at the newest of the others."""
    S = begun(x=start["x"], y=start["y"], theta=start["y"])
    for k in range(iterations):
        x, y, theta = S.now.values()
        e = noise(k, 0)
        theta = theta - lam["theta"](k) * (At(problem, x, theta, e).g_y + (theta - y) / gamma)
        at = At(problem, x, y, e)
        y = y - lam["y"](k) * (mu(k) * at.f_y + at.g_y - (y - theta) / gamma)
        at, below = At(problem, x, y, e), At(problem, x, theta, e)
        x = x - lam["x"](k) * (mu(k) * at.f_x + at.g_x - below.g_x)
        S.add(x=x, y=y, theta=theta)
    return S
