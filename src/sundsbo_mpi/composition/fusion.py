"""How the techniques of several variables share their messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.outgoing import Outgoing, Part, nothing

if TYPE_CHECKING:
    from torch import Tensor

    from sundsbo_mpi.composition.estimators import Variables
    from sundsbo_mpi.composition.techniques import Rounds


def lockstep(
    steps: Mapping[str, Rounds[tuple[Tensor, Any]]],
    left_to_do: Callable[[], Callable[[], object]] = lambda: nothing,
) -> Rounds[tuple[Variables, dict[str, Any]]]:
    """Advance one step of every variable together, fusing what they yield into one message.

    A mixed strategy so costs the largest number of rounds among its techniques, not the sum.
    Returns the next variables and their memories, by name.  ``left_to_do`` is asked with every
    message for local work that it need not wait for.  Where no variable has anything to send, there
    is no round.
    """
    averaged: dict[str, Any] = dict.fromkeys(steps)
    running, done = dict(steps), {}
    while running:
        outgoing: dict[str, Any] = {}
        for name, step in tuple(running.items()):
            try:
                outgoing[name] = step.send(averaged[name])
            except StopIteration as end:
                done[name] = end.value
                del running[name]
        if running:
            sent = _flatten(outgoing)
            answer = (yield Outgoing(sent, left_to_do())) if sent else ()
            averaged = _deal(outgoing, answer)
    return {name: done[name][0] for name in steps}, {name: done[name][1] for name in steps}


def _flatten(outgoing: Mapping[str, Any]) -> tuple[Part, ...]:
    """Put everything that the variables yielded side by side."""
    parts: list[Part] = []
    for sent in outgoing.values():
        parts += sent if isinstance(sent, tuple) else (sent,)
    return tuple(parts)


def _deal(outgoing: Mapping[str, Any], averages: tuple[Tensor, ...]) -> dict[str, Any]:
    """Hand the averages back in the form in which each variable yielded."""
    left = iter(averages)
    return {
        name: tuple(next(left) for _ in sent) if isinstance(sent, tuple) else next(left)
        for name, sent in outgoing.items()
    }
