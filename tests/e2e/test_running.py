"""Whole runs that go well, and commands that need no MPI."""

import json
import sys

import h5py
import numpy as np
import pytest
from programs import finish

RUN = ("--iterations", 20, "--eval-every", 10, "--dtype", "float64")

# The toy problem on a ring of five with weights 1/3, all from zero, after ten iterations: x of the
# first and of the last agent.
TOY = {
    "sun-dsbo-gt": (0.000549997492, 0.000552494526),
    "sun-dsbo-extra": (0.000547770906, 0.000554778744),
}


@pytest.mark.parametrize("algorithm", TOY)
def test_toy(mpirun, sundsbo, tmp_path, algorithm):
    third = ("--self-weight", 1 / 3)
    assert sundsbo("topology", "ring", "--agents", 5, *third, "-o", "ring.npz").returncode == 0
    flags = ("--topology", "ring.npz", "--preset", "paper/toy", "--algorithm", algorithm)
    result = mpirun(5, *flags, "--iterations", 10, "--save-final", "--output", "run.h5")
    assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "run.h5") as run:
        x = run["final/x"][:]
    np.testing.assert_allclose(x[0], TOY[algorithm][0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(x[4], TOY[algorithm][1], rtol=0, atol=1e-11)


def test_a_run_leaves_a_file_and_a_summary(mpirun, sundsbo, network, task, tmp_path):
    flags = ("--topology", network(3), "--task", task, *RUN, "--save-final")
    result = mpirun(3, *flags, "--output", "run.h5")
    assert result.returncode == 0, result.stderr
    assert "run.h5" in result.stdout
    assert "iteration 0/20: " in result.stderr
    assert "iteration 20/20: " in result.stderr
    with h5py.File(tmp_path / "run.h5") as run:
        assert run.attrs["format"] in ("sundsbo-mpi/1", b"sundsbo-mpi/1")
        assert run.attrs["status"] in ("finished", b"finished")
        assert int(run["metrics/rows"][()]) == 3
        assert run["metrics/iteration"][:].tolist() == [0, 10, 20]
        # Two rounds of tracking and mixing, to two neighbours, of one x, two y, two theta.
        agents = run["metrics/agents"]
        assert agents["rounds"][-1].tolist() == [40] * 3
        assert agents["messages"][-1].tolist() == [80] * 3
        assert agents["bytes_payload"][-1].tolist() == [80 * 5 * 8] * 3
        assert agents["bytes_network"][-1].tolist() == [0] * 3
        assert (agents["bytes_shared"][:] == agents["bytes_payload"][:]).all()
        edges = run["metrics/edges/bytes"][-1]
        assert edges.tolist() == [40 * 5 * 8] * 6
        assert run["final/x"].shape == (3, 1)
        assert run["final/y"].shape == (3, 2)
        assert float(run["metrics/task/pair"][0]) == 1.0
        assert np.ptp(run["final/x"][:]) < 1e-12
    assert "finished" in sundsbo("show", "run.h5").stdout
    assert json.loads(sundsbo("show", "run.h5", "--json").stdout)["rows"] == 3


def test_the_same_run_twice_is_the_same_under_a_new_name(mpirun, network, tmp_path):
    """Also where it goes wrong most easily: noise, minibatches, a random start."""
    flags = ("--topology", network(2), "--task", "quadratic", "--set", "task.noise=0.3", *RUN)
    for _ in range(2):
        assert mpirun(2, *flags, "--save-final").returncode == 0
    names = list(tmp_path.rglob("*.h5"))
    assert len(names) == 2
    with h5py.File(names[0]) as one, h5py.File(names[1]) as two:
        for v in one["final"]:
            assert (one["final"][v][:] == two["final"][v][:]).all()
        for metric in one["metrics/task"]:
            np.testing.assert_array_equal(
                one["metrics/task"][metric][:], two["metrics/task"][metric][:]
            )


def test_one_agent_needs_no_launcher(mpirun, sundsbo, network, task, tmp_path):
    flags = ("--topology", network(1), "--task", task, *RUN, "--save-final")
    assert mpirun(1, *flags, "--output", "launched.h5").returncode == 0
    assert sundsbo(*flags, "--output", "alone.h5").returncode == 0
    with h5py.File(tmp_path / "launched.h5") as one, h5py.File(tmp_path / "alone.h5") as two:
        assert (one["final/y"][:] == two["final/y"][:]).all()
        assert one["metrics/agents/messages"][-1].tolist() == [0]


@pytest.fixture
def run_file(sundsbo, network, task, tmp_path):
    assert (
        sundsbo("--topology", network(1), "--task", task, *RUN, "--output", "run.h5").returncode
        == 0
    )
    return tmp_path / "run.h5"


QUICK = (
    ("--help",),
    ("--version",),
    ("run", "--help"),
    ("list",),
    ("list", "sun-dsbo-gt"),
    ("show", "run.h5"),
    ("show", "run.h5", "--json"),
    ("topology", "--help"),
    ("topology", "ring", "--agents", "4", "-o", "ring.npz"),
    ("topology", "check", "ring.npz"),
    ("topology", "convert", "ring.npz", "-o", "ring.mtx"),
)
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


def test_quick_commands_import_neither_mpi_nor_torch(run_file, tmp_path):
    for arguments in QUICK:
        result = finish([sys.executable, "-c", LOOK, *arguments], tmp_path)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines()[-1] == "imported: []", arguments
