"""Agents that run on other ranks do the same; where they run is recorded by agent."""

import time
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from sundsbo_mpi.comm import node
from sundsbo_mpi.comm.seating import assigned, seat
from sundsbo_mpi.config.resolving import Request
from sundsbo_mpi.running.run import run
from sundsbo_mpi.topology import BUILDERS, write_weights

HOSTS = ("even", "odd")


@pytest.fixture
def two_hosts(comm, monkeypatch):
    """Pretend that the ranks of the job are dealt to two nodes in turn."""
    real = node.local

    def local(communicator):
        here = real(communicator)
        own = communicator.allgather(comm.rank % 2)  # of the job's rank, wherever its agent is
        mine = own[communicator.rank]
        return replace(
            here,
            rank=own[: communicator.rank].count(mine),
            nodes=tuple(map(own.index, own)),
            hosts=tuple(HOSTS[node] for node in own),
            cores=here.cores[: own.count(mine)],
        )

    monkeypatch.setattr(node, "local", local)


@pytest.fixture
def default_dtype():
    yield
    torch.set_default_dtype(torch.float32)


def test_each_rank_takes_its_seat(comm):
    ring = BUILDERS["ring"](comm.size)
    nodes = [rank % 2 for rank in range(comm.size)]
    agents, expected = assigned(ring, nodes, place=True)
    seated, said = seat(comm, ring, nodes, place=True)
    assert seated.rank == agents[comm.rank]
    assert said == expected
    assert seated.allgather(comm.rank) == np.argsort(agents).tolist()
    unmoved, _ = seat(comm, ring, nodes, place=False)
    assert unmoved == comm
    if seated != comm:
        seated.Free()


@pytest.mark.usefixtures("default_dtype", "two_hosts")
def test_a_run_with_its_agents_placed_is_the_same_run(comm, tmp_path, capsys):
    folder = comm.bcast(tmp_path)
    topology = str(folder / "ring.npz")
    if comm.rank == 0:
        write_weights(BUILDERS["ring"](comm.size), topology)
    comm.Barrier()
    for place in (False, True):
        flags = {
            "topology": {"file": topology, "place": place},
            "task": {"name": "quadratic"},
            "run": {"iterations": 12, "eval_every": 4, "save_final": True, "device": "cpu"},
            "output": {"file": str(folder / f"{place}.h5")},
        }
        run(Request(flags=flags), time.monotonic(), [])
    agents, said = assigned(
        BUILDERS["ring"](comm.size), [rank % 2 for rank in range(comm.size)], place=True
    )
    if comm.rank == 0:
        printed = " ".join(capsys.readouterr().err.split())
        assert (said or "") in printed
        assert ("--place looks for" in printed) == (comm.size > 1)
        with h5py.File(folder / "False.h5") as plain, h5py.File(folder / "True.h5") as placed:
            for name in plain["final"]:
                np.testing.assert_array_equal(placed["final"][name][:], plain["final"][name][:])
            np.testing.assert_array_equal(
                placed["metrics/edges/bytes"][:], plain["metrics/edges/bytes"][:]
            )
            hosts = [HOSTS[agents.index(agent) % 2].encode() for agent in range(comm.size)]
            assert placed["agents/host"][:].tolist() == hosts
            afar, near = (
                file["metrics/agents/bytes_network"][-1].sum() for file in (plain, placed)
            )
        assert near < afar if said and "instead" in said else near == afar
