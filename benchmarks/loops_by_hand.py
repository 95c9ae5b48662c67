"""Iterations written out as loops: directions, steps and rounds by hand, and nothing to look after.

They do what the program's agents do, to the last bit (``apart`` what agents without messages do);
but nobody keeps time, and only ``watched`` asks whether to go on and looks for numbers that are not
finite.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from sundsbo_mpi.diagnosis.health import Health

if TYPE_CHECKING:
    from collections.abc import Callable

    from rounds_by_hand import Messages, Windows
    from torch import Tensor

    from sundsbo_mpi.agent import Agent, Position
    from sundsbo_mpi.composition.estimators import Variables


def apart(one: Agent, begin: Position) -> Variables:
    """Do the gradients and steps of SE, without any rounds; return the last w."""
    w = begin.w
    for k in range(one.iterations):
        D, lam = _direction(one, w, k), _steps(one, k)
        w = {v: s.sub(D[v], alpha=lam[v]) for v, s in w.items()}
        del D  # the next one finds its room
    return w


def se(
    one: Agent,
    begin: Position,
    rounds: Windows | Messages,
    look: Callable[[int, Variables], object] = lambda _k, _D_hat: None,
) -> Variables:
    """Do SUN-DSBO-SE, w <- W (w - lam D_hat), and look at every D_hat; return the last w."""
    w = begin.w
    for k in range(one.iterations):
        D_hat, lam = _direction(one, w, k), _steps(one, k)
        w = _average(rounds, w, partial(_step, w, D_hat, lam))
        look(k, D_hat)
        del D_hat  # the next one finds its room
    return w


def watched(one: Agent, begin: Position, rounds: Windows | Messages) -> Variables:
    """Do ``se`` with a look for numbers that are not finite, and the word on whether to go on."""
    health = Health(one.tally.agent, one.tally.agents, tuple(begin.w))

    def look(k: int, D_hat: Variables) -> None:
        health.note_direction(k, D_hat)
        health.judge(one.control.finish())
        one.control.start(health.word)

    w = se(one, begin, rounds, look)
    health.judge(one.control.finish())
    return w


def gt(one: Agent, begin: Position, rounds: Windows | Messages) -> Variables:
    """Do SUN-DSBO-GT, D <- W (D + D_hat - D_hat before) and w <- W (w - lam D); return the last w.

    It goes on from the trackers that ``begin`` has, and does not change them.
    """
    w, memory = begin.w, begin.state.memory
    D, before = {v: m.D for v, m in memory.items()}, {v: m.D_hat for v, m in memory.items()}
    for k in range(one.iterations):
        D_hat, lam = _direction(one, w, k), _steps(one, k)
        D = _average(rounds, D, partial(_track, D, D_hat, before))
        w = _average(rounds, w, partial(_step, w, D, lam))
        before = D_hat
    return w


def _direction(one: Agent, w: Variables, k: int) -> Variables:
    found: Variables = one.algorithm.direction(one.task, w, one.task.sample(k), k)
    return found


def _steps(one: Agent, k: int) -> dict[str, float]:
    return {v: step(k) for v, step in one.algorithm.step_sizes.items()}


def _average(
    rounds: Windows | Messages, like: Variables, write: Callable[[tuple[Tensor, ...]], None]
) -> Variables:
    lengths = [len(v) for v in like.values()]
    mean = rounds.average(lambda slot: write(slot.split_with_sizes(lengths)))
    return dict(zip(like, mean.split_with_sizes(lengths), strict=True))


def _step(w: Variables, D: Variables, lam: dict[str, float], places: tuple[Tensor, ...]) -> None:
    for (v, s), place in zip(w.items(), places, strict=True):
        torch.sub(s, D[v], alpha=lam[v], out=place)


def _track(D: Variables, new: Variables, old: Variables, places: tuple[Tensor, ...]) -> None:
    for (v, d), place in zip(D.items(), places, strict=True):
        torch.add(d, new[v], out=place).sub_(old[v])
