"""The options that decide what is mixed with, and by which technique."""

import json

import h5py
import numpy as np
import pytest
from programs import assert_refused

RUN = ("--dtype", "float64", "--save-final", "--set", "algorithm.p=0.0")
STEP, PENALTY = 0.1, 2.0
STEPS = ("--set", f"algorithm.step_x={STEP}", "--set", f"algorithm.mu0={PENALTY}")


@pytest.fixture
def pair(tmp_path):
    """Two agents that listen more to the other than to themselves; an eigenvalue is -0.6."""
    W = np.array([[0.2, 0.8], [0.8, 0.2]])
    np.save(tmp_path / "pair.npy", W)
    return tmp_path / "pair.npy", W


def after_one_iteration(W):
    """From zero, where agent i's gradient in x is mu (x - i): x^1 = lambda mu W (0, 1)."""
    return STEP * PENALTY * W @ np.arange(2)[:, None]


def mixes_with(path, W):
    with h5py.File(path) as run:
        np.testing.assert_allclose(run["final/x"][:], after_one_iteration(W), atol=1e-12)
        np.testing.assert_allclose(run["topology/weights"][:], W, atol=1e-15)
        values = np.sort(np.linalg.eigvalsh(W))
        assert run.attrs["rho"] == pytest.approx(max(-values[0], values[-2]))
        assert run.attrs["lambda_min"] == pytest.approx(values[0])


def test_lazy_weights_make_a_topology_fit_and_are_those_in_the_file(mpirun, task, pair, tmp_path):
    file, W = pair
    flags = ("--topology", file, "--task", task, "--iterations", 1, *RUN, *STEPS)
    exact = (*flags, "--algorithm", "sun-dsbo-ed")
    assert_refused(mpirun(2, *exact), "-0.6", "sun-dsbo-ed", "algorithm.lazy=true")
    lazy = ("--set", "algorithm.lazy=true", "--output", "lazy.h5")
    result = mpirun(2, *exact, *lazy)
    assert result.returncode == 0, result.stderr
    mixes_with(tmp_path / "lazy.h5", (np.eye(2) + W) / 2)
    result = mpirun(2, *flags, "--algorithm", "sun-dsbo-se", "--output", "plain.h5")
    assert result.returncode == 0, result.stderr
    mixes_with(tmp_path / "plain.h5", W)
    result = mpirun(2, *flags, "--algorithm", "sun-dsbo-extra")
    assert result.returncode == 0, "as it is, it fits EXTRA: " + result.stderr


def test_one_variable_by_another_technique(mpirun, task, pair, tmp_path):
    """GT with x by ED is the method of that name, and costs what it costs."""
    lazy = ("--set", "algorithm.lazy=true")
    flags = ("--topology", pair[0], "--task", task, "--iterations", 10, *RUN, *lazy)
    choices = {
        "mixed": ("--algorithm", "sun-dsbo-gt", "--set", "algorithm.x=ed"),
        "named": ("--algorithm", "sun-dsbo-ed-gt"),
        "pure": ("--algorithm", "sun-dsbo-gt"),
    }
    x, bytes_sent = {}, {}
    for name, choice in choices.items():
        result = mpirun(2, *flags, *choice, "--output", f"{name}.h5")
        assert result.returncode == 0, result.stderr
        with h5py.File(tmp_path / f"{name}.h5") as run:
            x[name] = run["final/x"][:]
            bytes_sent[name] = run["metrics/agents/bytes_payload"][-1].tolist()
            config = json.loads(run.attrs["config"])
        assert config["algorithm"]["x"] == ("ed" if name == "mixed" else None)
    assert (x["mixed"] == x["named"]).all()
    assert not np.allclose(x["mixed"], x["pure"], rtol=0, atol=1e-9)
    # x has length 1, y and theta 2; GT sends two vectors of a variable, ED one; one neighbour.
    assert bytes_sent["mixed"] == bytes_sent["named"] == [10 * (1 + 2 * 2 + 2 * 2) * 8] * 2
    assert bytes_sent["pure"] == [10 * (2 * 1 + 2 * 2 + 2 * 2) * 8] * 2
