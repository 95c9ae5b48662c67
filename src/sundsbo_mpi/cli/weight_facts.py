"""What ``sundsbo-mpi topology check`` tells of weights that are fit for gossip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.algorithms.safety import safe_for
from sundsbo_mpi.topology import digits
from sundsbo_mpi.topology.spectrum import DENSE_UP_TO, second_modulus

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from sundsbo_mpi.topology import Mixing


def facts(mixing: Mixing) -> dict[str, str]:
    """Return what matters, by what it is called."""
    alone = mixing.steady and mixing.symmetric
    return {
        "agents n": str(mixing.agents),
        **_graph(mixing),
        **(_spectrum(mixing) if alone else _sequence(mixing)),
        "SHA-256": mixing.sha256,
        **_methods(mixing),
    }


def _graph(mixing: Mixing) -> dict[str, str]:
    edges = mixing.edges()
    count = len(edges) // 2 if mixing.symmetric else len(edges)
    degrees = np.concatenate([_degrees(W) for W in mixing.sample])
    told = f"{degrees.min()} to {degrees.max()}, mean {degrees.mean():.3g}"
    kind = "edges" if mixing.symmetric else "directed edges"
    return {kind: str(count), "degrees": told}


def _degrees(W: csr_array) -> NDArray[np.int64]:
    """Count to how many others each agent sends."""
    return np.bincount(W.indices, minlength=W.shape[0]) - (W.diagonal() > 0)


def _spectrum(mixing: Mixing) -> dict[str, str]:
    return {
        "rho": _share(mixing.rho),
        "spectral gap 1 - rho": f"{mixing.spectral_gap:.6g}",
        **_smallest(mixing),
    }


def _smallest(mixing: Mixing) -> dict[str, str]:
    if mixing.lambda_min is None:
        return {}
    bound = "" if mixing.matrices else "at least "
    return {"smallest eigenvalue": f"{bound}{round(mixing.lambda_min, 12) + 0.0:.9g}"}


def _sequence(mixing: Mixing) -> dict[str, str]:
    period = len(mixing.matrices)
    told = {
        "matrices": f"{period} in turn" if period else f"{len(mixing.sample)} draws looked at",
        "symmetric": "yes" if mixing.symmetric else "no",
    }
    if mixing.agents <= DENSE_UP_TO:
        each = [second_modulus([W]) for W in mixing.sample]
        told["rho of each"] = f"{min(each):.6g} to {max(each):.6g}, mean {np.mean(each):.6g}"
    if period:
        told["rho of their product"] = _share(mixing.rho**period)
    return told | {"rho per iteration": _share(mixing.rho)} | _smallest(mixing)


def _share(rho: float) -> str:
    return f"{round(rho, 12):.{digits(rho, 9)}g}"


def _methods(mixing: Mixing) -> dict[str, str]:
    safe = safe_for(mixing.lambda_min)
    proven = safe if mixing.steady else safe_for(None)
    told = {"safe for": ", ".join(name for name, good in proven.items() if good)}
    if doubtful := [name for name, good in safe.items() if good and not proven[name]]:
        told["no theory for"] = f"{', '.join(doubtful)} (they may diverge on networks that change)"
    unsafe = [name for name, good in safe.items() if not good]
    if not unsafe:
        return told
    if mixing.lambda_min is None:
        return told | {"not safe for": f"{', '.join(unsafe)} (they need symmetric matrices)"}
    lazily = safe_for((1 + mixing.lambda_min) / 2)
    cured = ", ".join(name for name in unsafe if lazily[name])
    cure = "safe" if mixing.steady else "allowed"
    return told | {
        "not safe for": ", ".join(unsafe),
        f"{cure} with (I + W)/2": f"{cured} (--set algorithm.lazy=true)",
    }
