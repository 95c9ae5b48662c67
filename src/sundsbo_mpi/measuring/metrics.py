"""What is measured at an evaluation: consensus, invariants, and the task's report.

All functions are collective over the agents of ``tally``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sundsbo_mpi.comm.agreement import agree, jointly
from sundsbo_mpi.errors import AgreedError, UsageError, brief
from sundsbo_mpi.metric_names import local_name

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.tasks.base import Task


def average(tally: Tally, w: Variables, private: slice | None = None) -> Variables:
    """Return v_bar = mean_i v_i for every variable, summed in double precision.

    Where the agent's own coordinates of x are ``private``, each is its owner's.
    """
    w_bar = {v: _mean(tally, s) for v, s in w.items() if v != "x" or private is None}
    return w_bar if private is None else {"x": assembled(tally, w["x"], private), **w_bar}


def assembled(tally: Tally, x: Tensor, private: slice) -> Tensor:
    """Return the x whose every coordinate is that of the agent that it is private to."""
    own = torch.zeros_like(x)
    own[private] = x[private]
    return torch.from_numpy(tally.total(own.numpy(force=True))).to(x)


def consensus(
    tally: Tally, w: Variables, w_bar: Variables, private: slice | None = None
) -> dict[str, float]:
    """Return the consensus error mean_i ‖v_i - v_bar‖² of every variable.

    Only an agent's own coordinates of a ``private`` x count, of which there is nothing to agree on.
    """
    away = {v: w[v].double() - w_bar[v].double() for v in w}
    if private is not None:
        away["x"] = away["x"][private]
    own = [float(difference.square().sum()) for difference in away.values()]
    return dict(zip(away, tally.mean(np.array(own)).tolist(), strict=True))


def invariants(tally: Tally, defects: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Return ‖mean_i a_i‖ / ‖mean_i b_i‖ for every variable's defect a and scale b.

    Each technique conserves an average over the agents exactly, so this is of the order of
    rounding, unless the exchange loses or alters messages or a column of W does not sum to one.
    Rounding counts relative to b, so near a solution, where b vanishes, float32 may show anything.
    """
    return {
        v: _ratio(_mean(tally, defect.double()), _mean(tally, scale.double()))
        for v, (defect, scale) in defects.items()
    }


def reference_errors(
    references: Mapping[str, Mapping[str, Tensor]], w_bar: Variables
) -> dict[str, float]:
    """Return ‖v_bar - v*‖ / ‖v*‖ as ``error_<name>_<variable>`` for every known solution v*."""
    return {
        f"error_{name}_{v}": _ratio(w_bar[v].double() - known.double(), known.double())
        for name, solution in references.items()
        for v, known in solution.items()
    }


def report(tally: Tally, task: Task, w_bar: Variables, w: Variables) -> dict[str, float]:
    """Merge the agents' reports at the averaged iterate, and at their own as ``<name>_local``.

    A float is averaged over the agents; a pair (sum, count) becomes sum / sum; arrays go to
    ``task.summarise`` on rank 0, for the averaged iterate only.  The summary is known on rank 0
    alone.

    Raises:
        AgreedError: a report is not of the form that ``tasks.base.Task`` says, the agents' reports
            differ in names or kinds, or there are arrays without ``summarise``.
    """
    averaged = task.report(w_bar["x"], w_bar["y"])
    local = task.report(w["x"], w["y"])
    # Lists, since the order decides what is merged with what.
    found = jointly(tally, lambda: [list(kinds(r).items()) for r in (averaged, local)])
    forms = dict(zip(("the task's report", "its report at its own iterate"), found, strict=True))
    agree(tally, forms, "report the same names and kinds in the same order on all agents")
    arrays = {name: value for name, value in averaged.items() if _kind(name, value) == "array"}
    merged = _merge(tally, averaged)
    merged |= {local_name(name): value for name, value in _merge(tally, local).items()}
    if arrays and not hasattr(task, "summarise"):
        raise AgreedError(
            f"the task reports the arrays {', '.join(arrays)} but has no method summarise: "
            "add one, or report floats or pairs (sum, count)."
        )
    if arrays:
        gathered = {name: tally.gather(value) for name, value in arrays.items()}
        if tally.is_root:
            merged |= task.summarise(gathered)  # type: ignore[attr-defined]
    return merged


def kinds(reported: Any) -> dict[str, str]:
    """Name the kind of each reported metric: array, pair or float.

    Raises:
        UsageError: the report is no mapping, or a metric is none of these.
    """
    if not isinstance(reported, Mapping):
        raise UsageError(f"the task's report is {brief(reported)}: expected a mapping of metrics.")
    return {name: _kind(name, value) for name, value in reported.items()}


def _kind(name: Any, value: Any) -> str:
    if isinstance(name, str) and name.isprintable():
        if isinstance(value, np.ndarray) and value.ndim:
            return "array"
        if isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value)):
            return "pair"
        if _is_number(value):
            return "float"
    raise UsageError(
        f"the task's report has {brief(name)}: {brief(value)}: expected a printable name with a "
        "number that a float can hold, a pair (sum, count) of such, or a numpy array."
    )


def _is_number(value: Any) -> bool:
    numeric = isinstance(value, int | float | np.number | np.ndarray | torch.Tensor)
    if not numeric or getattr(value, "ndim", 0) != 0:
        return False
    if isinstance(value, np.number | np.ndarray) and np.iscomplexobj(value):
        return False
    try:
        float(value)
    except (OverflowError, RuntimeError, TypeError, ValueError):
        return False
    return True


def _merge(tally: Tally, reported: Mapping[str, Any]) -> dict[str, float]:
    scalars = {n: v for n, v in reported.items() if _kind(n, v) != "array"}
    pairs = [v if isinstance(v, tuple) else (v, 1.0) for v in scalars.values()]
    pairs = [(float(s), float(count)) for s, count in pairs]
    sums = tally.total(np.array(pairs, dtype=np.float64).reshape(-1, 2))
    return {
        name: float(s / count) if count else math.nan
        for name, (s, count) in zip(scalars, sums, strict=True)
    }


def _mean(tally: Tally, v: Tensor) -> Tensor:
    return torch.from_numpy(tally.mean(v.numpy(force=True))).to(v)


def _ratio(numerator: Tensor, denominator: Tensor) -> float:
    return float(numerator.norm() / denominator.norm())
