"""Checks of the losses and of their gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from sundsbo_mpi.algorithms import METHODS, second_order
from sundsbo_mpi.composition.directions import gradient, leaf, saddle_of_losses
from sundsbo_mpi.errors import UsageError, brief
from sundsbo_mpi.running.inspection import (
    LOSSES,
    evaluated,
    private_block,
    require_dependence,
    require_division,
)
from sundsbo_mpi.running.second_derivatives import obstacle
from sundsbo_mpi.taskcheck.contents import fingerprint
from sundsbo_mpi.taskcheck.differences import (
    SHORT,
    TOLERANCE,
    farthest_apart,
    require_gradient,
)
from sundsbo_mpi.taskcheck.findings import Said, absent, passed, remark
from sundsbo_mpi.tasks.base import Penalty

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.taskcheck.bench import Bench
    from sundsbo_mpi.tasks.base import Task

PENALTIES = (Penalty(0.0, 0.9), Penalty(0.7, 0.4))
DIRECTIONS = ("D_x", "D_y", "D_theta")
SADDLE_ERROR = 1e-8
"""Relative, in float64."""


def loss(name: str, bench: Bench) -> Said:
    """A loss is a finite scalar, a pure function, and has the gradient of its values."""
    moves = {"x": 0, "y": 0}
    for agent, task in bench.ends:
        _slopes(name, agent, task, task.start())  # where roots and norms may have none
    for agent, task in enumerate(bench.tasks):
        for variable, slope in _slopes(name, agent, task, bench.point()).items():
            moves[variable] += bool(slope.any())
    require_dependence(name, agents=sum(moves.values()))
    worst = max(
        require_gradient(name, partial(_at, task, name, task.sample(0)), bench.point())
        for _, task in bench.ends
    )
    agreement = f"its gradient agrees with differences to {worst:.0e}"
    if name == "lower" and not moves["y"]:
        return remark(
            f"it does not depend on y, so that the lower level chooses nothing; {agreement}"
        )
    if name == "lower" and not moves["x"]:
        return remark(f"it does not depend on x, and so y not on x either; {agreement}")
    return passed(agreement)


def single_level(bench: Bench) -> Said:
    """The ordinary training loss is a loss, and names the variables that it trains."""
    if not bench.offers("single_level"):
        return absent("single-level methods need it")
    named = getattr(bench.tasks[0], "single_level_variables", None)
    if not isinstance(named, tuple | list) or not named or not {*named} <= {"x", "y"}:
        raise UsageError(
            f"single_level_variables of the task is {brief(named)}: expected which of x and y "
            'single_level() trains, such as ("y",).'
        )
    return loss("single_level", bench)


def twice(bench: Bench) -> Said:
    """The second derivatives of the lower loss, which some methods need, are those of its values.

    Autograd takes parts that it cannot differentiate twice for constants, without a word.
    """
    task, chosen = bench.tasks[0], bench.config.algorithm["name"]
    found = obstacle(task, bench.point())
    if not found:
        error = farthest_apart(partial(_slope_along, task), bench.point(), SHORT).error
        if error <= TOLERANCE:
            return passed(f"second derivatives of lower() agree with differences to {error:.0e}")
        found = f"they are off by {error:.0e}, as at kinks or where a backward() drops its graph"
    if chosen in second_order():
        raise UsageError(
            f"{chosen} needs second derivatives of lower(), but {found}: mend that, or take "
            "sun-dsbo-*, which need none."
        )
    return remark(
        f"second derivatives of lower() cannot be trusted: {found}; so leave out "
        f"{', '.join(_families(second_order()))}, and take sun-dsbo-*, which need none"
    )


def _slope_along(task: Task, x: Tensor, y: Tensor) -> Tensor:
    """Return the slope of the lower loss along a direction of y, itself differentiable."""
    direction = torch.randn(task.sizes["y"], generator=torch.Generator().manual_seed(2))
    with torch.enable_grad():
        at = y if y.requires_grad else leaf(y)
        (found,) = gradient(task.lower(x, at, task.sample(0)), at, keep_graph=True)
        return found @ direction.to(found)


def _families(names: Sequence[str]) -> list[str]:
    """Name methods by what their names begin with, where that is said of all that begin so."""
    stems = Counter(map(_stem, names))
    mixed = {_stem(name) for name in METHODS if name not in names}
    whole = {stem for stem, count in stems.items() if count > 1} - mixed
    said = (f"{_stem(name)}-*" if _stem(name) in whole else name for name in names)
    return list(dict.fromkeys(said))


def _stem(name: str) -> str:
    return name.partition("-")[0]


def everything(bench: Bench) -> Said:
    """``everything`` is a batch, the same whenever it is called, on which the losses are finite."""
    if not bench.offers("everything"):
        return absent("without it --stationarity records NaN")
    for agent, task in enumerate(bench.tasks):
        data: Any = task
        batch = data.everything()
        if fingerprint(batch) != fingerprint(data.everything()):
            raise UsageError(
                f"everything() of agent {agent} returns something else when it is called again: "
                "return all of the agent's data, and nothing random."
            )
        for name in LOSSES:
            value = evaluated(task, name, *bench.point(), batch)
            _require_finite(f"{name}() on everything()", agent, value)
    return passed("finite losses")


def saddle(bench: Bench) -> Said:
    """``saddle`` has the directions of the two losses and the proximal term, in new tensors."""
    if not bench.offers("saddle"):
        return absent("the two losses are differentiated one by one")
    worst = 0.0
    for agent, task in bench.ends:
        (x, y), (_, theta) = bench.point(), bench.point(1)
        w, batch = {"x": x, "y": y, "theta": theta}, task.sample(0)
        offer: Any = task
        for penalty in PENALTIES:
            found = offer.saddle(x, y, theta, batch, penalty)
            expected = saddle_of_losses(task, w, batch, penalty)
            for name, mine, theirs in zip(DIRECTIONS, found, expected, strict=True):
                worst = max(worst, _error(f"saddle() of agent {agent}", name, mine, theirs))
            before = [v.clone() for v in found]
            for v in found:
                v.fill_(torch.nan)  # as the caller may
            again = offer.saddle(x, y, theta, batch, penalty)
            if not all(map(torch.equal, before, again)):
                raise UsageError(
                    f"saddle() of agent {agent} returns something else after its result was "
                    "overwritten: return new tensors, that neither task nor batch go on using."
                )
    return passed(f"agrees with the losses to {worst:.0e}")


def private(bench: Bench) -> Said:
    """The agents' private blocks are a division of x, and the losses keep to them."""
    if not bench.offers("private"):
        return absent("x is shared by all agents")
    blocks = [private_block(task) for task in bench.tasks]
    require_division([(block.start, block.stop) for block in blocks], bench.tasks[0].sizes["x"])
    return passed("the agents' blocks are x, and each keeps to its own")


def _at(task: Task, name: str, batch: Any, x: Tensor, y: Tensor) -> Tensor:
    return evaluated(task, name, x, y, batch)


def _slopes(name: str, agent: int, task: Task, at: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """Return the gradient of an agent's loss by variable, once the loss itself is sound."""
    x, y = map(leaf, at)
    batch = task.sample(0)
    value, again = (evaluated(task, name, x, y, batch) for _ in range(2))
    if value.dtype != x.dtype:
        raise UsageError(
            f"{name}() of agent {agent} returns {value.dtype} where x and y are {x.dtype}: convert "
            "the data in to(device, dtype), or make them in torch's default dtype."
        )
    _require_finite(f"{name}()", agent, value)
    first, second = value.item(), again.item()
    if first != second:
        raise UsageError(
            f"{name}() of agent {agent} is {first:.9g} and then {second:.9g} for the "
            "same x, y and batch: take dropout and the like out of it, and draw in sample()."
        )
    slopes = dict(zip("xy", gradient(value, x, y), strict=True))
    for variable, slope in slopes.items():
        _require_finite(f"the gradient of {name}() in {variable}", agent, slope)
    return slopes


def _require_finite(what: str, agent: int, value: Tensor) -> None:
    if not value.isfinite().all():
        raise UsageError(
            f"{what} of agent {agent} is not finite near the start: look for a logarithm, root or "
            "quotient at 0, a mean over no samples, or missing values in the data."
        )


def _error(who: str, name: str, mine: Any, theirs: Tensor) -> float:
    if not isinstance(mine, torch.Tensor) or mine.shape != theirs.shape or mine.requires_grad:
        raise UsageError(
            f"{who} has {name} that is no plain tensor of shape {tuple(theirs.shape)}: return "
            "(D_x, D_y, D_theta), flat and without a graph."
        )
    size = float(theirs.norm())
    error = float((mine - theirs).norm()) / (size or 1.0)
    if not error <= SADDLE_ERROR:
        raise UsageError(
            f"{who} has {name} that differs from that of upper() and lower(), with the proximal "
            f"term, by {error:.1e} of its length: correct it, or leave saddle() out."
        )
    return error
