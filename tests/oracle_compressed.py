"""The oracle of compressed gossip: replicas of all agents as rows, the error feedback on paper.

Nothing is imported from the package.  Q takes rows one by one; a round of a method is
X -> X + gamma_c (W - I) R, where R are the replicas after each has moved by Q(X - R).
"""

import numpy as np


def bfloat16(v):
    """Round to the nearest number with 8 significant bits, ties to even."""
    bits = np.asarray(v, dtype=np.float32).view(np.uint32).astype(np.uint64)
    bits += 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))
    return (bits & np.uint64(0xFFFF0000)).astype(np.uint32).view(np.float32).astype(np.float64)


def quantiser(bits, block):
    most = 2 ** (bits - 1) - 1

    def Q(X):
        out = np.zeros_like(X)
        for start in range(0, X.shape[1], block):
            part = X[:, start : start + block]
            scale = bfloat16(np.abs(part).max(axis=1, keepdims=True) / most)
            scale[scale == 0] = 1
            out[:, start : start + block] = scale * np.clip(np.rint(part / scale), -most, most)
        return out

    return Q


def top_k(fraction):
    def Q(X):
        k = int(np.ceil(fraction * X.shape[1]))
        places = np.argsort(-np.abs(X), axis=1, kind="stable")[:, :k]
        out = np.zeros_like(X)
        np.put_along_axis(out, places, bfloat16(np.take_along_axis(X, places, 1)), 1)
        return out

    return Q


class Rounds:
    """The answers to the rounds of an iteration, in each of which a tensor has its replicas."""

    def __init__(self, W, Q, gamma_c):
        self.W, self.Q, self.gamma_c = W, Q, gamma_c
        self.replicas = {}

    def __call__(self, r, X):
        """Answer what the agents send as the tensor r: the rows of X."""
        R = self.replicas.get(r, np.zeros_like(X))
        R = R + self.Q(X - R)
        self.replicas[r] = R
        return X + self.gamma_c * (self.W @ R - R)


def trajectory(problem, technique, start, iterations, lam, direction, rounds):
    """Return the final rows of every variable by SE, one of the three GTs, EXTRA or ED."""
    old = {v: (rows, rows, 0.0) for v, rows in start.items()}
    S = {v: rows.copy() for v, rows in start.items()}
    old = {v: (rows, rows, 0.0) for v, rows in start.items()}
    D = {v: np.zeros_like(rows) for v, rows in S.items()}
    U = {v: np.zeros_like(rows) for v, rows in S.items()}
    for k in range(iterations):
        new = direction(problem, S, k)
        for v, s in S.items():
            moved = D[v] + new[v] - U[v]
            match technique:
                case "se":
                    S[v] = rounds((v, "s"), s - lam * new[v])
                case "gt":
                    D[v] = rounds((v, "D"), moved)
                    S[v] = rounds((v, "s"), s - lam * D[v])
                case "semi-gt":
                    D[v] = rounds((v, "D"), moved)
                    S[v] = rounds((v, "s"), s) - lam * D[v]
                case "non-atc-gt":
                    D[v] = rounds((v, "D"), D[v]) + new[v] - U[v]
                    S[v] = rounds((v, "s"), s) - lam * D[v]
                case "ed":
                    before, _, change = old[v]
                    S[v] = rounds((v, "s"), 2 * s - before - lam * new[v] + change)
                    old[v] = s, None, lam * new[v]
                case "extra":
                    before, bar, change = old[v]
                    old[v] = s, rounds((v, "s"), s), lam * new[v]
                    S[v] = s + old[v][1] - (before + bar) / 2 - lam * new[v] + change
        U = new
    return S
