"""What rank 0 tells the person at the terminal, or the log, while a run goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

    from sundsbo_mpi.runfile import Row

REFRESH_SECONDS = 0.2
ROW_SECONDS = 1.0
LOG_SECONDS = 5.0
HEADLINES = ("test_accuracy", "weight_gap", "error_bilevel_x", "error_penalised_x", "upper_loss")
"""Task metrics worth a place on the progress line; without any of them, the task's first two."""


def headline(task: Mapping[str, float], consensus: Mapping[str, float]) -> str:
    """Say of an evaluation what matters most, in a few words."""
    shown = [name for name in HEADLINES if name in task] or list(task)[:2]
    words = [f"{name} {task[name]:.4g}" for name in shown]
    words += [f"consensus {v} {e:.2g}" for v, e in consensus.items() if v == "y"]
    return ", ".join(words)


class Reporter:
    """A bar on a terminal, a line now and then in a log; silent on every rank but 0.

    What cannot be written, to a full disk or a terminal that is gone, is left unsaid.

    Args:
        loud: Whether this is rank 0.
        iterations: Number K of iterations.
    """

    def __init__(self, loud: bool, iterations: int) -> None:
        self._iterations = iterations
        self._shown = 0.0
        self._bar = _bar(iterations) if loud else None

    def _try(self, tell: Callable[[Progress], object]) -> None:
        if self._bar is None:
            return
        try:
            tell(self._bar)
        except OSError:
            with suppress(OSError):
                self._bar.stop()
            # The old one would try again to write all that it could not.
            self._bar = _bar(self._iterations)

    def say(self, *sentences: str) -> None:
        """Print sentences above the bar."""
        for sentence in sentences:
            self._try(partial(_print, sentence=sentence))

    def note(self, *sentences: str) -> None:
        """Print remarks that a user should know, and need not act on."""
        self.say(*(f"note: {sentence}" for sentence in sentences))

    def advance(self, done: int) -> None:
        """Move the bar to the iterations done."""
        bar = self._bar
        if bar is None or not self._waited(LOG_SECONDS if bar.disable else REFRESH_SECONDS):
            return
        self._shown = time.monotonic()
        if bar.disable:
            self.say(f"iteration {done}/{self._iterations}")
        else:
            self._try(partial(_move, done=done))

    def _waited(self, seconds: float) -> bool:
        return time.monotonic() - self._shown > seconds

    def row(self, row: Row) -> None:
        """Show the headline metrics of an evaluation."""
        bar = self._bar
        if bar is None:
            return
        words = headline(row.task, row.consensus)
        if not bar.disable:
            self._try(partial(_move, done=row.iteration, description=words))
        elif row.iteration in {0, self._iterations} or self._waited(ROW_SECONDS):
            self._shown = time.monotonic()
            self.say(f"iteration {row.iteration}/{self._iterations}: {words}")

    def __enter__(self) -> Reporter:
        """Start the bar."""
        self._try(lambda bar: bar.start())
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the bar as it is."""
        self._try(lambda bar: bar.stop())


def _print(bar: Progress, sentence: str) -> None:
    bar.console.print(sentence, markup=False)


def _move(bar: Progress, done: int, description: str | None = None) -> None:
    bar.update(bar.task_ids[0], completed=done, description=description, refresh=True)


def _bar(iterations: int) -> Progress:
    """Return a bar, disabled where there is no terminal."""
    # Ranks that say nothing start sooner without these.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    class Lasting(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # where rich would end the program

    console = Lasting(stderr=True, highlight=False, soft_wrap=True)
    bar = Progress(
        TextColumn("iteration"),
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
        console=console,
        # No thread of its own: it would take its turn from the agents on a full node.
        auto_refresh=False,
        disable=not console.is_terminal,
    )
    bar.add_task("", total=iterations)
    return bar
