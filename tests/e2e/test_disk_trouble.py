"""A disk that fails in mid-run ends the run on all ranks with one sentence; its rows are kept."""

import os
import shutil

import pytest
from programs import assert_refused

from sundsbo_mpi.runfile import read_run

TASK = '''
import resource
import shutil
import torch

class Task:
    """min (x - agent)^2/2 + |y|^2/2; agent 0's disk fails before its third report is recorded."""

    sizes = {"x": 1, "y": 2}

    def __init__(self, *, agent, agents, seed, folder="", reports=0):
        self.agent, self.folder, self.reports = agent, folder, reports

    def start(self):
        return torch.zeros(1), torch.zeros(2)

    def sample(self, k, draw=0):
        return 1.0

    def upper(self, x, y, batch):
        return ((x - self.agent) ** 2).sum() / 2 + (y**2).sum() / 2

    def lower(self, x, y, batch):
        return ((y - x) ** 2).sum() / 2

    def report(self, x, y):
        self.reports += self.agent == 0
        if self.reports == 5:  # two for every evaluation
            if self.folder:
                shutil.rmtree(self.folder)
            else:
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        return {"loss": float(((x - self.agent) ** 2).sum())}
'''


@pytest.fixture
def failing(tmp_path):
    path = tmp_path / "failing.py"
    path.write_text(TASK, encoding="utf-8")
    return f"{path}:Task"


FLAGS = ("--iterations", 40, "--eval-every", 10)


def test_a_full_disk_in_mid_run(mpirun, sundsbo, network, failing, tmp_path):
    flags = ("--topology", network(2), "--task", failing, *FLAGS, "--output", "run.h5")
    result = mpirun(2, *flags)
    assert_refused(result, "'run.h5' cannot be written any more: File too large", "2 evaluations")
    data = read_run(tmp_path / "run.h5")
    assert data.iteration.tolist() == [0, 10]
    assert sundsbo("show", "run.h5").returncode == 0
    os.truncate(tmp_path / "run.h5", os.path.getsize(tmp_path / "run.h5") - 8)
    assert "damaged" in sundsbo("show", "run.h5").stdout
    repaired = sundsbo("repair", "run.h5")
    assert "2 of 5 planned evaluations are whole" in repaired.stdout
    assert read_run(tmp_path / "run-repaired.h5").iteration.tolist() == [0, 10]
    shutil.move(tmp_path / "run.h5", tmp_path / "away.h5")
    assert_refused(sundsbo("repair", "run.h5"), "there is no run file 'run.h5'")


def test_a_directory_that_vanishes_in_mid_run(mpirun, network, failing, tmp_path):
    (tmp_path / "out").mkdir()
    folder = ("--set", f'task.folder="{tmp_path}/out"')
    flags = ("--topology", network(2), "--task", failing, *FLAGS, "--output", "out/run.h5", *folder)
    result = mpirun(2, *flags)
    assert_refused(result, "'out/run.h5' was removed or replaced while the run wrote it")
