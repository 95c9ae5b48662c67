"""Jobs of the program, started as a user does, whose ranks can be found and killed."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS), str(TESTS / "e2e")]  # what these programs share with the tests

from programs import BIN, environment  # noqa: E402

MARK = "SOAK_JOB"
LAST = 3000
"""Characters of a job's output that are looked at or repeated."""
RANKS = (b"PMIX_RANK=", b"PMI_RANK=")
"""Only the ranks have one of these in their environment, not what starts them."""


class FailedError(Exception):
    """A program did not do what it should."""


class Job:
    """One ``mpirun``, known by a mark in the environment of all its processes.

    Args:
        ranks: Number of ranks.
        words: What follows ``sundsbo-mpi``.
        folder: Where it runs, and leaves what it says.
        bin: The environment with the program and its mpirun.
        launching: Further arguments of mpirun.
    """

    def __init__(self, ranks, words, folder, bin=BIN, launching=()):
        self.ranks, self.folder = ranks, folder
        self._mark = f"{MARK}={secrets.token_hex(8)}".encode()
        name, _, value = self._mark.decode().partition("=")
        command = [bin / "mpirun", *launching, "-n", ranks, bin / "sundsbo-mpi", *words]
        self.command = " ".join(map(str, command))
        self._log = folder / f"{secrets.token_hex(4)}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                cwd=folder,
                env=environment(**{name: value}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.began = time.monotonic()

    def alive(self):
        """Return the process of every rank that has begun and not ended, by rank."""
        found = {}
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with suppress(OSError):
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if self._mark in variables:
                    found |= {
                        int(v.partition(b"=")[2]): pid for v in variables if v.startswith(RANKS)
                    }
        return found

    @property
    def over(self):
        return self._process.poll() is not None

    def finish(self, limit):
        """Wait until mpirun and all ranks are gone; return the exit status and the seconds."""
        began = time.monotonic()
        while not self.over or self.alive():
            if time.monotonic() - began > limit:
                self.end()
                raise FailedError(f"not over after {limit} s: {self.command}\n{self.said()}")
            time.sleep(0.01)
        return self._process.returncode, time.monotonic() - began

    def end(self):
        """Kill whatever is left."""
        for pid in [*self.alive().values(), self._process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def said(self):
        """Return the end of what it said."""
        # Open MPI's mpirun mixes NUL bytes into what it passes on.
        return self._log.read_text(encoding="utf-8", errors="replace").replace("\0", "")[-LAST:]


def complete(ranks, words, folder, limit=600, bin=BIN, status=0):
    """Run a job to its end; return the seconds that it took and what it said."""
    job = Job(ranks, words, folder, bin)
    found, seconds = job.finish(limit)
    if found != status:
        raise FailedError(f"exit {found}, expected {status}: {job.command}\n{job.said()}")
    return seconds, job.said()


def topology(agents, folder):
    """Write a network that every method may use: uneven degrees, no eigenvalue below zero."""
    path = folder / f"network{agents}.npz"
    if not path.exists():
        make = ("ring", "--self-weight", "0.6") if agents > 2 else ("complete",)
        words = [BIN / "sundsbo-mpi", "topology", *make, "--agents", agents, "-o", path]
        subprocess.run([str(w) for w in words], check=True, capture_output=True, env=environment())
    return path


def report(program, failed, **figures):
    """Print one line of JSON and exit, with 1 if something failed."""
    print(json.dumps({"program": program, "failed": failed, **figures}), flush=True)
    sys.exit(bool(failed))
