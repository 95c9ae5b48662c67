"""A sweep of real runs, and a run like one of them whose topology is gone."""

import csv
import tomllib

import h5py
import numpy as np
from programs import BIN

SWEEP = """
[sweep]
metric = "upper_loss"
[sweep.over]
algorithm.step_x = [0.01, 0.1]
[run]
iterations = 30
eval_every = 10
[task]
name = "quadratic"
[topology]
file = "complete2.npy"
"""


def test_a_sweep_and_a_run_like_its_best(mpirun, sundsbo, network, tmp_path):
    topology = network(2)
    (tmp_path / "steps.toml").write_text(SWEEP)
    result = sundsbo("sweep", "steps.toml", "--launcher", f"'{BIN / 'mpirun'}' -n {{n}}")
    assert result.returncode == 0, result.stderr + result.stdout
    with (tmp_path / "steps" / "table.csv").open() as file:
        best, other = csv.DictReader(file)
    assert float(best["mean"]) < float(other["mean"])
    chosen = tomllib.loads((tmp_path / "steps" / "best.toml").read_text())
    assert chosen["algorithm"]["step_x"] == float(best["algorithm.step_x"])
    assert not list((tmp_path / "steps" / "checkpoints").iterdir())
    losses = {}
    for path in (tmp_path / "steps" / "runs").glob("*.h5"):
        with h5py.File(path) as run:
            losses[path] = run["metrics/task/upper_loss"][()]
    path = min(losses, key=lambda name: losses[name][-1])
    assert losses[path][-1] == float(best["mean"])
    topology.unlink()
    again = mpirun(2, "--like", path, "--output", "again.h5")
    assert again.returncode == 0, again.stderr
    with h5py.File(tmp_path / "again.h5") as run:
        np.testing.assert_array_equal(run["metrics/task/upper_loss"][()], losses[path])
