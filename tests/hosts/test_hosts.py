"""Runs over several hosts: the numbers of one host, by the right transports, and no hang."""

import h5py
import numpy as np
import pytest
from namespaces import EACH, HOSTS, lost, wait_for

from sundsbo_mpi.bench.file import read_bench
from sundsbo_mpi.runfile import read_run

BOTH = pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
RUN = ("--task", "slow.py:Slow", "--iterations", 20, "--eval-every", 10, "--save-final")
RUN += ("--algorithm", "sun-dsbo-gt")
LAST = ("x", "y", "theta")


def finished(job, mpi, hosts, tmp_path, *words):
    """Let a run end well; return its file, and what was said."""
    name = f"{hosts}-{len(list(tmp_path.glob('*.h5')))}.h5"
    status, said = job(mpi, hosts, *RUN, *words, "--output", name).end()
    assert status == 0, said
    return h5py.File(tmp_path / name), said


def assert_same(run, other):
    for v in LAST:
        assert np.array_equal(run["final"][v], other["final"][v]), v
    assert np.array_equal(run["metrics/task/loss"], other["metrics/task/loss"])


@BOTH
@pytest.mark.parametrize("hosts", [2, 3])
def test_a_run_over_hosts_has_the_numbers_of_one_host(job, rings, tmp_path, mpi, hosts):
    near = ("--topology", "near.txt")
    alone, _ = finished(job, mpi, 0, tmp_path, *near)
    over, said = finished(job, mpi, hosts, tmp_path, *near)
    with alone, over:
        assert_same(over, alone)
        names = [name.decode() for name in over["agents/host"]]
        assert len(set(names)) == hosts
        assert names == sorted(names)
        assert f"{hosts} of {HOSTS * EACH} links cross nodes" in said
        network = over["metrics/agents/bytes_network"][-1]
        shared = over["metrics/agents/bytes_shared"][-1]
        total = alone["metrics/agents/bytes_shared"][-1]
        assert not alone["metrics/agents/bytes_network"][-1].any()
        # On a ring an agent at the edge of its host has one neighbour there and one elsewhere.
        per_host = HOSTS * EACH // hosts
        edge = np.isin(np.arange(HOSTS * EACH) % per_host, (0, per_host - 1))
        assert np.array_equal(network, np.where(edge, total // 2, 0))
        assert np.array_equal(network + shared, total)


WAYS = {
    "auto": "shared memory within a node, persistent Neighbor_alltoallv between nodes",
    "neighbor": "Neighbor_alltoallv",
    "shared": "shared memory within a node, point to point between nodes",
}


@BOTH
def test_messages_take_the_way_that_is_said_and_none_changes_the_numbers(job, rings, tmp_path, mpi):
    runs = {}
    for name, way in WAYS.items():
        words = ("--topology", "near.txt", "--transport", name)
        runs[name], said = finished(job, mpi, HOSTS, tmp_path, *words)
        assert f"transport: {way}\n" in said
        assert runs[name].attrs["transport"] == way
    for name in WAYS:
        assert_same(runs[name], runs["auto"])
    for run in runs.values():
        run.close()


@BOTH
def test_place_lowers_the_cut_and_leaves_the_numbers(job, rings, tmp_path, mpi):
    far = ("--topology", "far.txt")
    before, said_before = finished(job, mpi, HOSTS, tmp_path, *far)
    after, said_after = finished(job, mpi, HOSTS, tmp_path, *far, "--place")
    with before, after:
        assert_same(after, before)
        cut = before["metrics/agents/bytes_network"][-1].sum()
        assert after["metrics/agents/bytes_network"][-1].sum() == cut // 2
    assert "6 of 6 links cross nodes" in said_before
    assert "placement: 3 of 6 links cross nodes instead of 6" in said_after


@BOTH
def test_a_bench_tells_links_within_a_node_from_those_between(job, rings, tmp_path, mpi):
    sizes = ("--sizes", "4,65536,1048576", "--payload", "2000,10000", "--repeats", 3)
    status, said = job(
        mpi, HOSTS, "bench", *sizes, "--topology", "near.txt", "--output", "b.h5"
    ).end()
    assert status == 0, said
    found = read_bench(tmp_path / "b.h5")
    assert found.ranks["node"].tolist() == [rank - rank % EACH for rank in range(HOSTS * EACH)]
    links = found.links["auto", "host"]
    assert set(links) == {"same node", "other node"}
    # Which of the two is faster is a matter of the machine, and of what else it does.
    assert all(0 < fitted.alpha + fitted.beta * 65536 < 10 for fitted in links.values())
    assert len(found.pairs["first"]) == len(found.edges) / 2


@BOTH
def test_the_loss_of_a_host_ends_the_job_and_what_is_left_goes_on_elsewhere(
    job, rings, tmp_path, mpi
):
    slowly = ("--set", "task.pause=0.2", "--iterations", 2000, "--checkpoint", "saved")
    keep = ("--checkpoint-every", 5, "--topology", "near.txt", "--output", "run.h5")
    run = job(mpi, HOSTS, *RUN, *slowly, *keep)
    wait_for(lambda: newest(tmp_path / "saved") >= 5)
    lost(HOSTS)
    status, said = run.end(60)
    assert status not in (0, 2, 3, 85), said
    assert read_run(tmp_path / "run.h5").rows >= 1
    end = newest(tmp_path / "saved") + 3
    status, said = job(mpi, 2, "resume", "saved", "--iterations", end).end()
    assert status == 0, said
    assert read_run(tmp_path / "run.h5").iteration[-1] == end


def newest(folder):
    """Return the iteration of the newest checkpoint that is whole, or -1."""
    found = folder.glob("iteration-*/manifest.json")
    return max((int(path.parent.name.removeprefix("iteration-")) for path in found), default=-1)
