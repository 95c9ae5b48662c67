"""Makes pytest fit for MPI: all ranks agree on every verdict, and no hang outlives its test.

Start as ``mpirun -n N python -m mpi4py -m pytest --with-mpi tests/mpi``.  A test passes only if it
passes on every rank; the rank that failed says so at once, in lines tagged with its number.
"""

from __future__ import annotations

import faulthandler
import os
import socket
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

TIME_LIMIT = int(os.environ.get("MPI_TEST_SECONDS", "60"))
"""Seconds for one test, after which the job ends with the Python stack of the rank that hangs."""

PASSED, SKIPPED, FAILED = 0, 1, 2
HERE = Path(__file__).parent


class Verdict:
    """Turns each rank's outcome of a test phase into the outcome on all ranks."""

    def __init__(self, config):
        from mpi4py import MPI

        self.mpi = MPI
        self.comm = MPI.COMM_WORLD.Dup()  # a test's own messages must not meet ours
        self.tag = f"[rank {self.comm.rank}, {socket.gethostname()}]"
        self.capture = config.pluginmanager.getplugin("capturemanager")
        self.stderr = os.dup(2)  # where the words go while a test's output is captured

    def worst_and_best(self, outcome):
        """Reduce collectively, sleeping while others still work: there may be one core for all."""
        mine = np.array([outcome, -outcome], dtype="i")
        both = np.empty_like(mine)
        request = self.comm.Iallreduce(mine, both, self.mpi.MAX)
        while not request.Test():
            time.sleep(0.001)
        return int(both[0]), -int(both[1])

    def say(self, text):
        lines = "".join(f"{self.tag} {line}\n" for line in text.splitlines())
        os.write(self.stderr, lines.encode(errors="replace"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self):
        faulthandler.dump_traceback_later(TIME_LIMIT, exit=True, file=self.stderr)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        outcome = {"passed": PASSED, "skipped": SKIPPED}.get(report.outcome, FAILED)
        if outcome == FAILED:  # first: the others may never come to agree on it
            self.say(f"{item.nodeid} failed in {call.when}:\n{report.longreprtext}")
        worst, best = self.worst_and_best(outcome)
        if outcome != FAILED and worst != best:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} did not end alike on all ranks (see the tagged lines)"
        return report

    def pytest_unconfigure(self):
        self.comm.Barrier()
        self.comm.Free()


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config):
    # Ranks that shared pytest's own folder would clear it while others do the same.
    with tempfile.TemporaryDirectory() as folder:
        config.option.basetemp = Path(folder) / "pytest"
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    if not config.getoption("--with-mpi"):
        return
    verdict = Verdict(config)
    config.pluginmanager.register(verdict)
    if verdict.comm.rank > 0:
        config.pluginmanager.unregister(name="terminalreporter")


@pytest.hookimpl(tryfirst=True)  # before pytest-mpi looks at the markers
def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.mpi)


@pytest.fixture
def comm():
    """A communicator of all ranks that belongs to one test."""
    from mpi4py import MPI

    own = MPI.COMM_WORLD.Dup()
    yield own
    own.Free()
