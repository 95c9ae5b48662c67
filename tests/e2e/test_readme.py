"""What the README tells a user to type works."""

from pathlib import Path

import h5py
import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture
def readme_task(tmp_path):
    """Write the README's own task to the file that its first line names."""
    blocks = README.read_text(encoding="utf-8").split("```python\n")
    code = next(block for block in blocks if block.startswith("# mytask.py")).split("```")[0]
    (tmp_path / "mytask.py").write_text(code)
    return "mytask.py:RidgePenalty"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_readmes_own_task(mpirun, network, readme_task, tmp_path, dtype):
    flags = ("--topology", network(2), "--task", readme_task, "--set", "task.noise=1")
    steps = ("--set", "algorithm.step_y=0.05", "--iterations", 100, "--dtype", dtype)
    result = mpirun(2, *flags, *steps, "--output", "run.h5")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "run.h5") as run:
        error = run["metrics/task/validation_error"][:]
    assert error[-1] < error[0] / 2
