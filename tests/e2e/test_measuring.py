"""What a run measures beside its iterates: stationarity, and how well the data were cleaned."""

import h5py
import numpy as np
import pytest


def test_stationarity_vanishes_at_the_penalised_solution(mpirun, network, tmp_path):
    flags = ("--topology", network(2), "--task", "quadratic", "--stationarity")
    times = ("--iterations", 900, "--eval-every", 300)
    result = mpirun(2, *flags, *times, "--output", "run.h5")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "run.h5") as run:
        measure = run["metrics/stationarity"][:]
        residual = run["metrics/stationarity_residual"][:]
        lipschitz = run["metrics/lipschitz"][:]
        error = run["metrics/task/error_penalised_x"][:]
    assert np.isfinite(measure).all()
    assert (np.diff(measure) < 0).all()
    assert measure[0] > 1e-3
    assert measure[-1] < 1e-10
    assert error[-1] < 1e-5
    assert (residual < 1e-6).all()
    # The lower level is one quadratic: its smoothness is the same everywhere.
    assert lipschitz[0] > 1
    np.testing.assert_allclose(lipschitz, lipschitz[0], rtol=1e-9)


def test_stationarity_is_measured_only_when_asked_for(sundsbo, network, tmp_path):
    flags = ("--topology", network(1), "--task", "quadratic", "--iterations", 2)
    assert sundsbo(*flags, "--output", "run.h5").returncode == 0
    with h5py.File(tmp_path / "run.h5") as run:
        assert np.isnan(run["metrics/stationarity"][:]).all()


@pytest.fixture
def looking_for_sklearn(tmp_path):
    """Write a task file that tells how many of the agents have imported scikit-learn."""
    (tmp_path / "looking.py").write_text("""
import sys

from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning


class Looking(HyperCleaning):
    defaults = {"algorithm": {"step_x": 100.0, "step_y": 0.05, "step_theta": 0.025, "mu0": 2.0}}

    def report(self, x, y):
        return super().report(x, y) | {"has_sklearn": (float("sklearn" in sys.modules), 1)}
""")
    return "looking.py:Looking"


def test_cleaning_the_digits(mpirun, network, looking_for_sklearn, tmp_path):
    """Nobody needs scikit-learn, whose import would keep all the others waiting."""
    flags = ("--topology", network(3), "--task", looking_for_sklearn, "--dataset", "digits")
    times = ("--iterations", 30, "--eval-every", 10, "--set", "algorithm.gamma=66.7")
    result = mpirun(3, *flags, *times, "--output", "run.h5")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "run.h5") as run:
        assert int(run["metrics/rows"][()]) == 4
        assert run["metrics/iteration"][:].tolist() == [0, 10, 20, 30]
        assert run["agents/train_samples"][:].tolist() == [333] * 3
        assert run["agents/validation_samples"][:].tolist() == [166] * 3
        task = {name: series[:] for name, series in run["metrics/task"].items()}
    assert not task["has_sklearn"].any()
    assert task["test_accuracy"][0] < 30
    assert task["test_accuracy"][-1] > 60
    assert task["weight_clean"][0] == task["weight_corrupted"][0] == 0.5
    gap = task["weight_clean"] - task["weight_corrupted"]
    np.testing.assert_allclose(task["weight_gap"], gap, atol=1e-12)
    assert gap[-1] > 0
    assert task["weight_auc"][-1] > 0.6
