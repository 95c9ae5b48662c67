"""What the messages of a run travel over."""

import json
import math
import mmap
import os
import subprocess

import h5py
import numpy as np
import pytest
from programs import BIN, assert_refused

from sundsbo_mpi.comm import openmpi
from sundsbo_mpi.comm.transports import TRANSPORTS
from sundsbo_mpi.comm.world import load_mpi

FLAGS = ("--iterations", 12, "--dtype", "float64", "--save-final", "--algorithm", "sun-dsbo-gt")
TOLD = openmpi.settings({}, *load_mpi().get_vendor())


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


@pytest.mark.parametrize("name", TOLD)
def test_open_mpi_knows_what_it_is_told(name):
    """A variable that it does not know would be passed over in silence."""
    value = TOLD[name]
    told = subprocess.run(
        [BIN / "ompi_info", "--parsable", "--all"],
        env=os.environ | {name: value},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"param:{name.removeprefix('OMPI_MCA_')}:value:{value}\n" in told.stdout


FULL = """
import math
from sundsbo_mpi.comm.transports import shared
from sundsbo_mpi.tasks.quadratic import Quadratic

class Task(Quadratic):
    def __init__(self, *, agent, agents, seed, rooms: int = 0, d_x: int = 5, d_y: int = 8):
        \"\"\"Nothing can be shared any more once that has been asked so often.\"\"\"
        super().__init__(agent=agent, agents=agents, seed=seed, d_x=d_x, d_y=d_y)
        left = iter(rooms * [math.inf])
        shared.room = lambda: next(left, 0)
"""


@pytest.fixture
def full(tmp_path):
    """Write a task under which the memory of the node fills; return what to give to --task."""
    path = tmp_path / "full.py"
    path.write_text(FULL)
    return f"{path}:Task"


def test_what_finds_no_room_after_all_goes_over_mpi_and_the_run_file_says_so(
    mpirun, full, network, tmp_path
):
    flags = ("--topology", network(3), "--task", full, *FLAGS, "--set", "task.rooms=1")
    expected, *results = (
        mpirun(3, *flags, "--transport", name, "--output", f"{name}.h5")
        for name in ("p2p", "auto", "shared")
    )
    assert expected.returncode == 0, expected.stderr
    with h5py.File(tmp_path / "p2p.h5") as run:
        final = run["final/y"][:]
        assert len(run["events"]) == 0
    for name, result in zip(("auto", "shared"), results, strict=True):
        assert result.returncode == 0, result.stderr
        with h5py.File(tmp_path / f"{name}.h5") as run:
            assert np.array_equal(run["final/y"][:], final), name
            assert run.attrs["transport"] == "shared memory"
            (event,) = map(json.loads, run["events"][()])
        assert (event["iteration"], event["kind"]) == (1, "transport")
        assert event["sentence"].startswith("messages of 168 bytes go over MPI within a node too: ")
        assert result.stderr.count(event["sentence"]) == 1


@pytest.mark.parametrize(
    ("sending", "size"),
    [
        ((), 8 * 2100),  # 500 + 2 x 800 numbers in each of two rounds
        (("--set", "algorithm.wire=bf16"), 2 * 2100),
        (("--algorithm", "sun-dsbo-non-atc-gt"), 2 * 8 * 2100),  # all at once
    ],
    ids=str,
)
def test_the_longest_message_itself_must_find_room(mpirun, full, network, sending, size):
    """Two slots of whole cache lines for each of two agents, in whole pages, and a page of MPI."""
    large = ("--set", "task.d_x=500", "--set", "task.d_y=800", "--iterations", 1)
    flags = ("--topology", network(2), "--task", full, *FLAGS, *large, *sending)
    result = mpirun(2, *flags, "--output", "run.h5")
    assert result.returncode == 0, result.stderr
    lines = 2 * math.ceil(size / 64) * 64
    windows = (2 * math.ceil(lines / mmap.PAGESIZE) + 1) * mmap.PAGESIZE
    assert f"no shared memory within a node: /dev/shm has room for 0 of the {windows}" in (
        result.stderr
    )


@pytest.mark.parametrize("transport", ["shared", "persistent"])
def test_a_killed_neighbour_is_not_waited_for(mpirun, task, network, transport):
    """The launcher ends the other; the program of this test has a time limit."""
    trouble = ("--set", "task.trouble=die", "--set", "task.who=1", "--set", "task.at=5")
    flags = ("--topology", network(2), "--task", task, *FLAGS, "--transport", transport)
    result = mpirun(2, *flags, *trouble)
    assert result.returncode not in (0, 2, 3), result.stderr


def test_gpu_buffers_need_gpus(mpirun, task, network):
    flags = ("--topology", network(2), "--task", task, *FLAGS, "--device", "cpu", "--gpu-direct")
    result = mpirun(2, *flags)
    assert result.returncode == 2, result.stderr
    assert "2 of 2 agents compute on the CPU" in result.stderr


def test_overlap_needs_a_second_thread(sundsbo, task, network):
    flags = ("--topology", network(1), "--task", task, *FLAGS, "--overlap", "always")
    result = sundsbo(*flags, MPI4PY_RC_THREAD_LEVEL="single")
    assert_refused(result, "--overlap always", "one thread only")


def test_the_transports_are_listed(sundsbo):
    said = " ".join(sundsbo("list").stdout.split())
    for name, transport in TRANSPORTS.items():
        assert f"{name}: {transport.about}" in said
    assert "|".join(TRANSPORTS) in sundsbo("run", "--help").stdout
