"""Agents that are lost, at moments that were chosen, from runs that go on without them."""

from pathlib import Path

import pytest
from kills import PLAN, try_one
from programs import BIN, finish

from sundsbo_mpi.runfile import read_run


@pytest.fixture(autouse=True)
def _needs_fault_tolerance(library):
    if library != "openmpi":
        pytest.skip("only Open MPI offers fault tolerance")


def plan(*deaths, **changes):
    return PLAN | {"deaths": list(deaths), **changes}


def test_one_loss_after_another_until_two_are_left():
    """From the first iteration on, also of agent 0, of two at once, and in a recovery.

    Those who are left are done with a status of their own, and wait for who still has to write.
    """
    deaths = [
        (4, 0, "posted"),
        (0, 29, "evaluating"),
        (2, 60, "begun"),
        (5, 60, "collected"),
        (3, 3, "recovering"),
    ]
    last = try_one(7, plan(*deaths, method="sun-dsbo-ed", status=85, closing_seconds=3.0))
    assert last["agents"] == [1, 6]
    assert last["bridges"] == [[1, 6]]
    assert 60 <= last["from"] <= 62


def test_losses_at_the_very_end():
    """In the last iteration, before the end is agreed on, and after."""
    iterations = 60
    deaths = [
        (0, iterations - 1, "posted"),
        (2, 0, "agreeing"),
        (3, 0, "gone"),
    ]
    last = try_one(5, plan(*deaths, topology="star", iterations=iterations))
    assert last["from"] == iterations
    assert set(last["agents"]) == {1, 3, 4}


DYING = '''
import os
from own_task import Task

class Dying(Task):
    """Agent 0 dies while it measures after 20 iterations, the other is in trouble in the 50th."""

    def sample(self, k, draw=0):
        if (self.agent, k) == (1, 50):
            raise RuntimeError("trouble on purpose")
        self.k = k
        return 1.0

    def report(self, x, y):
        if (self.agent, getattr(self, "k", 0)) == (0, 19):
            os.kill(os.getpid(), 9)
        return super().report(x, y)
'''


def test_a_loss_in_an_evaluation_and_trouble_of_the_last_that_is_left(network, task, tmp_path):
    """The row that was being measured is there, once, and the launcher says that it failed."""
    (tmp_path / "dying.py").write_text(DYING)
    flags = ("--topology", network(2), "--task", "dying.py:Dying", "--output", "run.h5")
    often = ("--iterations", 60, "--eval-every", 10, "--on-failure", "continue")
    command = (BIN / "mpirun", "--with-ft", "ulfm", "-n", 2, BIN / "sundsbo-mpi")
    result = finish([*command, *flags, *often], tmp_path, PYTHONPATH=str(Path(task).parent))
    assert result.returncode == 1, result.stderr
    assert "[rank 1, " in result.stderr
    found = read_run(tmp_path / "run.h5")
    assert found.iteration.tolist() == [0, 10, 20, 30, 40, 50]
    assert (found.status, found.planned) == ("failed", 7)
