"""What the messages of a run travel over."""

import h5py
import numpy as np
import pytest
from programs import assert_refused

from sundsbo_mpi.comm.transports import TRANSPORTS

FLAGS = ("--iterations", 12, "--dtype", "float64", "--save-final", "--algorithm", "sun-dsbo-gt")


def test_a_run_is_the_same_bit_for_bit_over_every_transport_and_tells_which(
    mpirun, task, network, tmp_path
):
    final, said = {}, {}
    for name in TRANSPORTS:
        flags = ("--topology", network(3), "--task", task, *FLAGS, "--transport", name)
        result = mpirun(3, *flags, "--output", f"{name}.h5")
        assert result.returncode == 0, result.stderr
        assert "UCX" not in result.stderr
        with h5py.File(tmp_path / f"{name}.h5") as run:
            final[name] = run["final/y"][:]
            said[name] = run.attrs["transport"]
        assert f"transport: {said[name]}\n" in result.stderr
    assert said["auto"] == said["shared"] == "shared memory"
    assert said["p2p"] == "point to point"
    for name in TRANSPORTS:
        assert np.array_equal(final[name], final["auto"]), name


@pytest.mark.parametrize("transport", ["shared", "persistent"])
def test_a_killed_neighbour_is_not_waited_for(mpirun, task, network, transport):
    """The launcher ends the others; the program of this test has a time limit."""
    trouble = ("--set", "task.trouble=die", "--set", "task.who=1", "--set", "task.at=5")
    flags = ("--topology", network(3), "--task", task, *FLAGS, "--transport", transport)
    result = mpirun(3, *flags, *trouble)
    assert result.returncode not in (0, 2, 3), result.stderr


def test_gpu_buffers_need_gpus(mpirun, task, network):
    flags = ("--topology", network(2), "--task", task, *FLAGS, "--device", "cpu", "--gpu-direct")
    result = mpirun(2, *flags)
    assert result.returncode == 2, result.stderr
    assert "2 of 2 agents compute on the CPU" in result.stderr


def test_overlap_needs_a_second_thread(mpirun, task, network):
    flags = ("--topology", network(2), "--task", task, *FLAGS, "--overlap", "always")
    result = mpirun(2, *flags, MPI4PY_RC_THREAD_LEVEL="single")
    assert_refused(result, "--overlap always", "one thread only")


def test_the_transports_are_listed(sundsbo):
    said = " ".join(sundsbo("list").stdout.split())
    for name, transport in TRANSPORTS.items():
        assert f"{name}: {transport.about}" in said
    assert "|".join(TRANSPORTS) in sundsbo("run", "--help").stdout
