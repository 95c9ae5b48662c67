"""What every rank finds on its node."""

import pytest

from sundsbo_mpi.comm.node import cap_threads, choose_device, crowd_notes, local
from sundsbo_mpi.comm.waiting import PATIENT, SPARING
from sundsbo_mpi.errors import UsageError


def test_all_ranks_of_one_machine_share_one_node(comm):
    here = local(comm)
    assert here.rank == comm.rank
    assert here.nodes == (0,) * comm.size
    assert len(set(here.hosts)) == 1
    assert len(here.hosts) == comm.size


def test_nodes_are_numbered_by_their_lowest_rank(comm, monkeypatch):
    """Even and odd ranks as two hosts of one name: names do not tell machines apart."""
    from mpi4py import MPI

    class TwoHosts(MPI.Intracomm):
        def Split_type(self, kind):
            assert kind == MPI.COMM_TYPE_SHARED
            return self.Split(self.rank % 2, self.rank)

    here = local(TwoHosts(comm))
    assert here.nodes == tuple(rank % 2 for rank in range(comm.size))
    assert here.rank == comm.rank // 2
    assert len(here.cores) == len(range(comm.rank % 2, comm.size, 2))


def test_cores_are_those_of_each_rank(comm, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {comm.rank, 100}, raising=False)
    here = local(comm)
    assert here.cores == tuple(frozenset({rank, 100}) for rank in range(comm.size))


@pytest.mark.parametrize("crowded", [False, True])
def test_whoever_shares_a_core_is_sparing_with_it(comm, crowded, monkeypatch):
    cores = {0} if crowded else set(range(comm.size))
    monkeypatch.setattr("os.sched_getaffinity", lambda _: cores, raising=False)
    assert local(comm).waiting is (SPARING if crowded and comm.size > 1 else PATIENT)


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


def two_nodes(comm):
    """Return a communicator whose even and odd ranks are on two nodes of one name."""
    from mpi4py import MPI

    class TwoNodes(MPI.Intracomm):
        def Split_type(self, kind):
            assert kind == MPI.COMM_TYPE_SHARED
            return self.Split(self.rank % 2, self.rank)

    return TwoNodes(comm)


@pytest.mark.parametrize("node", [0, 1])
def test_a_crowd_on_any_node_is_told_on_all_ranks(comm, monkeypatch, node):
    own = {0} if comm.rank % 2 == node else {comm.rank}
    monkeypatch.setattr("os.sched_getaffinity", lambda _: own, raising=False)
    ranks = len(range(node, comm.size, 2))
    said = f"{ranks} ranks of a node share 1 core: timings say little"
    notes = crowd_notes(local(two_nodes(comm)))
    assert [note[: len(said)] for note in notes] == [said] * (ranks > 1)


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
