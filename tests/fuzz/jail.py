"""Keeps the process that reads bad inputs, and judges what it says of each."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
WALL_SECONDS = 300
"""After which an input is taken to wait for something; processor time ends it much earlier."""
MOST_GROWTH = 2**29
"""Bytes that may become resident while one input, of at most some 100 kB, is read."""
LONGEST = 15_000
"""Characters of a line that a user has to read."""


class Outcome(NamedTuple):
    """What came of an input: "read", "refused", "raised", "died" or "hung".

    "lost" are the inputs over which a library crashed that the program cannot do without.
    """

    outcome: str
    lines: list[str]
    grown: int = 0
    did: list[str] = []  # noqa: RUF012  never changed

    @property
    def fault(self) -> str | None:
        """What is wrong with it, if anything."""
        if self.outcome not in ("read", "refused", "lost"):
            return f"{self.outcome}: {' | '.join(self.lines)}"
        if self.did:
            return f"it did {self.did}"
        if self.grown > MOST_GROWTH:
            return f"it took {self.grown / 2**20:.0f} MB"
        if self.outcome == "refused" and not self.lines[0].endswith("."):
            return f"no sentence: {self.lines[0]!r}"
        odd = [line for line in self.lines if not line.isprintable() or len(line) > LONGEST]
        return f"no line to read: {odd[0][:LONGEST]!r}" if odd else None


class Jail:
    """A process that reads bad inputs; where one ends it, the next one gets another process.

    Args:
        scratch: A folder for what the process says on its standard error.
        modules: What it imports before its memory is limited.
    """

    def __init__(self, scratch: Path, *modules: str) -> None:
        self._log = scratch / "jail.log"
        self._modules = modules
        self._process: subprocess.Popen[str] | None = None

    def ask(self, kind: str, **request: object) -> Outcome:
        """Return what comes of an input of a kind of ``jailed.KINDS``."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"kind": kind, **request}) + "\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            ready = selector.select(WALL_SECONDS)
        answer = process.stdout.readline() if ready else ""
        if answer:
            return Outcome(**json.loads(answer))
        status = process.wait() if ready else None
        self.close()
        if status is None:
            return Outcome("hung", [f"no answer after {WALL_SECONDS} s"])
        why = signal.Signals(-status).name if status < 0 else f"status {status}"
        return Outcome("died", [why, self._log.read_text()[-3000:]])

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        with self._log.open("w") as log:
            return subprocess.Popen(
                [sys.executable, str(HERE / "jailed.py"), *self._modules],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"PYTHONPATH": str(HERE.parent / "unit")},
            )
