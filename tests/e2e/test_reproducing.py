"""A figure of the paper from real runs, and from the same runs again."""

import csv
import sys

import h5py
import numpy as np
from programs import BIN, finish

METHOD = "sun-dsbo-gt"
FIGURE = (
    "reproduce",
    "toyopt",
    "--methods",
    METHOD,
    "--seeds",
    2,
    "--iterations",
    10,
    "--set",
    "run.save_final=true",
    "--out",
    "my runs",
)
SIMULATED = [0.000549997492, 0.000552494526]
"""x of the first and of the last agent after ten iterations from zero, found independently."""
LAUNCHER = f"'{BIN / 'mpirun'}' -n {{n}}"


def test_a_figure_and_the_same_again(mpirun, sundsbo, tmp_path):
    """One method, five agents, two seeds: two runs, and then none."""
    result = sundsbo(*FIGURE, "--launcher", LAUNCHER)
    assert result.returncode == 0, result.stderr + result.stdout
    runs = sorted((tmp_path / "my runs" / "runs").glob("*.h5"))
    assert len(runs) == 2
    written = [path.stat().st_mtime_ns for path in runs]
    with (tmp_path / "my runs" / "toyopt" / "table.csv").open() as file:
        rows = {(r["method"], r["metric"], r["iteration"]): r for r in csv.DictReader(file)}
    with h5py.File(runs[0]) as one, h5py.File(runs[1]) as two:
        errors = [run["metrics/task/error_bilevel_y"][-1] for run in (one, two)]
        x = one["final/x"][[0, 4], 0]
    np.testing.assert_allclose(x, SIMULATED, rtol=0, atol=1e-11)
    row = rows[METHOD, "error_bilevel_y", "10"]
    assert row["seeds"] == "2"
    np.testing.assert_allclose(float(row["ours_mean"]), np.mean(errors))
    again = sundsbo(*FIGURE, "--launcher", "no-such-launcher {n}")
    assert again.returncode == 0, again.stderr
    assert [path.stat().st_mtime_ns for path in runs] == written


def test_runs_that_cannot_start_are_told_and_nothing_is_written(sundsbo, tmp_path):
    result = sundsbo(*FIGURE, "--launcher", f"'{sys.executable}' -c 'raise SystemExit({{n}})'")
    assert result.returncode == 2, result.stderr
    assert "failed: no word of its own" in result.stdout
    assert "no run of toyopt is finished" in result.stderr
    assert not (tmp_path / "my runs" / "toyopt").exists()


LOOK = """
import sys
from sundsbo_mpi.cli import main
sys.argv = ["sundsbo-mpi", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("imported:", sorted({"mpi4py", "torch", "matplotlib", "sklearn"} & set(sys.modules)))
"""


def test_listing_needs_neither_mpi_nor_torch(tmp_path):
    for arguments in (("--list",), ("--help",), ("tabledcp",)):
        result = finish([sys.executable, "-c", LOOK, "reproduce", *arguments], tmp_path)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[-1] == "imported: []", arguments
