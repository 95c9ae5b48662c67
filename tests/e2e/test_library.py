"""The library under a launcher: its example runs, and finds what the command finds."""

from pathlib import Path

import h5py
import numpy as np
from programs import BIN, finish

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "library.py"

KEPT = f"""
import runpy

import numpy as np

kept = runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")
if kept["comm"].rank == 0:
    found = kept["found"]
    np.savez("kept.npz", x=found.x, y=found.y, loss=[row["upper_loss"] for row in found.history])
"""

AS_A_TASK = f"""
import runpy

Example = runpy.run_path({str(EXAMPLE)!r})["Ridge"]


class Ridge(Example):
    def __init__(self, *, agent, agents, seed):
        super().__init__(agent)
"""


def test_the_example_finds_what_the_command_finds(mpirun, sundsbo, tmp_path):
    (tmp_path / "kept.py").write_text(KEPT)
    (tmp_path / "own.py").write_text(AS_A_TASK)
    launched = [BIN / "mpirun", "-n", 2, BIN / "python", "-m", "mpi4py", "kept.py"]
    done = finish(launched, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "penalty" in done.stdout
    kept = np.load(tmp_path / "kept.npz")
    assert kept["loss"][-1] < kept["loss"][0] / 2

    sundsbo("topology", "ring", "--agents", 2, "-o", "ring.npz")
    steps = {"step_x": 0.1, "step_y": 0.05, "step_theta": 0.05}
    sets = [part for k, v in steps.items() for part in ("--set", f"algorithm.{k}={v}")]
    flags = (
        "--topology",
        "ring.npz",
        "--task",
        "own.py:Ridge",
        "--iterations",
        300,
        "--save-final",
    )
    done = mpirun(2, *flags, *sets, "--output", "run.h5")
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "run.h5") as run:
        assert run["metrics/task/upper_loss"][:].tolist() == kept["loss"].tolist()
        for v in ("x", "y"):
            mean = run[f"final/{v}"][:].astype(np.float64).mean(0).astype(np.float32)
            assert mean.tolist() == kept[v].tolist()
