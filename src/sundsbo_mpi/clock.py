"""Seconds that one agent spends in each phase of its iterations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PHASES = ("gradient", "pack", "wait", "mix", "evaluation")
"""Sampling, gradients and local vector arithmetic; copying into the message; from the start of the
exchange to the arrival of the last message; the weighted sum; metrics and their recording."""


class Clock:
    """Adds up wall-clock seconds by phase.

    Args:
        settle: Called before a phase ends, to wait for a GPU: else the work that a phase only
            queued would count in the phase that first needs its result.
    """

    def __init__(self, settle: Callable[[], None] | None = None) -> None:
        self._settle = settle
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._began = time.perf_counter()

    def start(self) -> None:
        """Count the wall time from now on."""
        self._began = time.perf_counter()

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Add the duration of the ``with`` block to ``phase``."""
        began = time.perf_counter()
        try:
            yield
        finally:
            if self._settle is not None:
                self._settle()
            self.seconds[phase] += time.perf_counter() - began

    @property
    def wall(self) -> float:
        """Seconds since the clock was started."""
        return time.perf_counter() - self._began

    @property
    def training(self) -> float:
        """Seconds since the clock was started, less those of evaluation."""
        return self.wall - self.seconds["evaluation"]
