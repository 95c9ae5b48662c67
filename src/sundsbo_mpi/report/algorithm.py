"""What the method of a run is: its equations, and what an iteration asks of agents and network."""

from __future__ import annotations

import inspect
import math
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from sundsbo_mpi.algorithms import METHODS, Horizon
from sundsbo_mpi.algorithms.sending import built
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from sundsbo_mpi.algorithms import Method
    from sundsbo_mpi.composition import Algorithm
    from sundsbo_mpi.runfile import RunData

ORACLES = {
    "f": "gradients of f",
    "g": "gradients of g",
    "hvp": "Hessian-vector products of g",
    "jvp": "Jacobian-vector products of g",
}


class Described(NamedTuple):
    """The equations, what surrounds them, and an iteration's price as rows of names and values."""

    equations: str
    about: str
    price: list[tuple[str, str]]


def described(run: RunData) -> Described | None:
    """Describe the method; None where this version does not know it."""
    entry = METHODS.get(str(run.attributes.get("algorithm")))
    if entry is None:
        return None
    about = inspect.getdoc(sys.modules[entry.build.__module__]) or ""
    return Described(inspect.getdoc(entry.build) or "", about, _price(entry, run))


def _price(entry: Method, run: RunData) -> list[tuple[str, str]]:
    built = _built(entry, run)
    if built is None:
        return []
    called = [
        f"{count} {ORACLES[name]}" for name, count in built.oracles._asdict().items() if count
    ]
    rows = [
        ("oracles per iteration", ", ".join(called) or "none"),
        ("communication rounds per iteration", str(built.rounds)),
        ("vectors to each neighbour per iteration", str(built.vectors)),
    ]
    if built.lambda_min > -math.inf:
        rows.append(("weights", f"symmetric, eigenvalues above {built.lambda_min:.4g}"))
    return rows


def _built(entry: Method, run: RunData) -> Algorithm | None:
    """Build it with the run's options, which may be those of another version."""
    names = {field.name for field in fields(entry.options)}
    try:
        given: dict[str, Any] = dict(run.config.get("algorithm", {}))
        horizon = Horizon(run.agent_count, max(1, int(run.attributes.get("iterations", 1))))
        options = entry.options(**{name: v for name, v in given.items() if name in names})
        return built(entry, options, horizon)
    except (UsageError, TypeError, ValueError):
        return None
