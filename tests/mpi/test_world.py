"""The world as every rank sees it."""

import sys
import threading

import pytest

from sundsbo_mpi.comm.launcher import find_launcher
from sundsbo_mpi.comm.node import cap_threads, choose_device, local, oversubscription
from sundsbo_mpi.comm.world import start_mpi
from sundsbo_mpi.errors import UsageError


def test_start_returns_the_world_that_the_launcher_started():
    world = start_mpi()
    launcher = find_launcher()
    assert launcher.name != "no launcher"
    assert (world.rank, world.size) == (launcher.rank, launcher.size)


def test_all_ranks_of_one_machine_share_one_host(comm):
    here = local(comm)
    assert (here.rank, here.size) == (comm.rank, comm.size)
    assert here.hosts == (0,) * comm.size
    assert len(set(here.names)) == 1
    assert len(here.names) == comm.size


def test_hosts_are_numbered_by_their_lowest_rank(comm, monkeypatch):
    """Even and odd ranks as two hosts of one name: names do not tell machines apart."""
    from mpi4py import MPI

    class TwoHosts(MPI.Intracomm):
        def Split_type(self, kind):
            assert kind == MPI.COMM_TYPE_SHARED
            return self.Split(self.rank % 2, self.rank)

    here = local(TwoHosts(comm))
    assert here.hosts == tuple(rank % 2 for rank in range(comm.size))
    assert here.rank == comm.rank // 2
    assert here.size == len(range(comm.rank % 2, comm.size, 2))
    assert len(here.cores) == here.size


def test_cores_are_those_of_each_rank(comm, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {comm.rank, 100}, raising=False)
    here = local(comm)
    assert here.cores == tuple(frozenset({rank, 100}) for rank in range(comm.size))


def test_torch_gets_an_equal_share_of_the_cores(comm, monkeypatch):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    try:
        assert cap_threads(local(comm)) == max(1, 6 // comm.size) == torch.get_num_threads()
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        torch.set_num_threads(2)
        assert cap_threads(local(comm)) == 2
    finally:
        torch.set_num_threads(before)


def test_more_ranks_than_cores_are_noticed(comm, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    notes = oversubscription(local(comm))
    said = f"{comm.size} ranks on 2 cores of a node: timings say little"
    assert [note[: len(said)] for note in notes] == [said] * (comm.size > 2)


def pretend_gpus(monkeypatch, ids):
    """Let this rank see GPUs with these ids; return the list of devices made current."""
    torch = pytest.importorskip("torch")
    current = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(ids))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(ids))
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda g: type("Properties", (), {"uuid": ids[g]})
    )
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    return current


def test_each_rank_takes_its_own_of_the_gpus_that_all_see(comm, monkeypatch):
    current = pretend_gpus(monkeypatch, [f"gpu{g}" for g in range(comm.size)])
    device, notes = choose_device("auto", local(comm))
    assert str(device) == f"cuda:{comm.rank}"
    assert current == [device]
    assert notes == ()


def test_each_rank_takes_the_only_gpu_that_it_sees(comm, monkeypatch):
    pretend_gpus(monkeypatch, [f"gpu{comm.rank}"])
    assert str(choose_device("auto", local(comm))[0]) == "cuda:0"


def test_too_few_gpus(comm, monkeypatch):
    pretend_gpus(monkeypatch, ["gpu0"])
    device, notes = choose_device("auto", local(comm))
    shared, warning = choose_device("cuda", local(comm))
    assert str(device) == ("cpu" if comm.size > 1 else "cuda:0")
    assert str(shared) == "cuda:0"
    assert len(notes) == len(warning) == (comm.size > 1)


def test_one_rank_without_gpu_stops_all_ranks(comm, monkeypatch):
    pretend_gpus(monkeypatch, ["gpu0"] if comm.rank != comm.size - 1 else [])
    with pytest.raises(UsageError, match="no usable GPU"):
        choose_device("cuda", local(comm))
    assert str(choose_device("auto", local(comm))[0]) == "cpu"


def test_cpu_asks_no_gpu(comm, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: pytest.fail("asked the driver"))
    assert str(choose_device("cpu", local(comm))[0]) == "cpu"


def test_a_helper_thread_may_communicate_while_the_main_thread_does_not(comm):
    """The thread level is at least SERIALIZED."""
    from mpi4py import MPI

    assert MPI.Query_thread() >= MPI.THREAD_SERIALIZED
    sums = []
    helper = threading.Thread(target=lambda: sums.append(comm.allreduce(1)))
    helper.start()
    helper.join()
    assert sums == [comm.size]


def test_mpi_is_imported_once():
    assert start_mpi() == sys.modules["mpi4py.MPI"].COMM_WORLD
