"""Seconds that one agent spends in each phase of its iterations."""

from __future__ import annotations

import time
from collections.abc import Callable

PHASES = ("gradient", "pack", "post", "wait", "mix", "evaluation")
"""Sampling, gradients, local vector arithmetic and compressing; writing the message, with the
arithmetic that is done straight into it; starting the exchange; waiting for the last message, and
for the other agents' word on whether to go on; decoding what came and averaging it; metrics and
their recording."""

Listener = Callable[[str, float, float], None]
"""Told of a phase that has ended: its name, and ``time.perf_counter`` at its beginning and end."""


class Clock:
    """Adds up wall-clock seconds by phase: ``with clock("mix"): ...``.

    Args:
        settle: Called before a phase ends, to wait for a GPU: else the work that a phase only
            queued would count in the phase that first needs its result.
    """

    def __init__(self, settle: Callable[[], None] | None = None) -> None:
        self.settle = settle
        self.listener: Listener | None = None
        """Who is told of every phase that has ended."""
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._phases = {name: Phase(self, name) for name in PHASES}
        self._began = time.perf_counter()

    def start(self, wall: float = 0.0) -> None:
        """Count the wall time from now on, beginning with that of an earlier part of the run."""
        self._began = time.perf_counter() - wall

    def __call__(self, phase: str) -> Phase:
        """Return what adds the duration of a ``with`` block to ``phase``."""
        return self._phases[phase]

    @property
    def wall(self) -> float:
        """Seconds since the clock was started."""
        return time.perf_counter() - self._began

    @property
    def training(self) -> float:
        """Seconds since the clock was started, less those of evaluation."""
        return self.wall - self.seconds["evaluation"]


class Phase:
    """One phase of a clock, made once: a generator for every block would cost twice the time."""

    __slots__ = ("_began", "_clock", "_name")

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock, self._name = clock, name
        self._began = 0.0

    def __enter__(self) -> None:
        """Look at the time."""
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        """Add the seconds since then, also if the block ended badly."""
        clock = self._clock
        if clock.settle is not None:
            clock.settle()
        ended = time.perf_counter()
        clock.seconds[self._name] += ended - self._began
        if clock.listener is not None:
            clock.listener(self._name, self._began, ended)
