"""What a rank finds on its node: the ranks that share it, its device, its threads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sundsbo_mpi.comm.crowd import crowd_note, crowd_of
from sundsbo_mpi.comm.devices import Node, choose_gpus, fair_threads

if TYPE_CHECKING:
    import torch
    from mpi4py import MPI

    from sundsbo_mpi.comm.waiting import Waiting


@dataclass(frozen=True)
class Local:
    """Where this rank is: its place on its node, and on which node every rank is."""

    comm: MPI.Intracomm
    rank: int
    """Rank among those of the same node, which share memory."""
    nodes: tuple[int, ...]
    """For every rank the lowest rank on its node: equal numbers share memory."""
    hosts: tuple[str, ...]
    """For every rank the name of its node, which need not be its alone."""
    cores: tuple[frozenset[int], ...]
    """For every rank of this node the cores it may run on."""

    @property
    def waiting(self) -> Waiting:
        """How this rank waits for others where none is expected to be lost."""
        from sundsbo_mpi.comm.waiting import PATIENT, SPARING

        return SPARING if crowd_of(self.cores) else PATIENT


def local(comm: MPI.Intracomm) -> Local:
    """Find out which ranks share this node, and which cores each of them may use; collective."""
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    place_here = (node.bcast(comm.rank), MPI.Get_processor_name())
    nodes, hosts = zip(*comm.allgather(place_here), strict=True)
    cores = tuple(node.allgather(_cores()))
    here = Local(comm, node.rank, nodes, hosts, cores)
    node.Free()
    return here


def choose_device(requested: str, local: Local) -> tuple[torch.device, tuple[str, ...]]:
    """Choose this rank's device and say what the user must know about the choice; collective.

    Returns the device, made current, and sentences, which are the same on all ranks.

    Raises:
        UsageError: on all ranks, if ``requested`` is unknown or is "cuda" where a rank has no GPU.
    """
    import torch

    found = [] if requested == "cpu" else _gpu_ids()
    by_node: dict[int, list[list[str]]] = {}
    for node, gpus in zip(local.nodes, local.comm.allgather(found), strict=True):
        by_node.setdefault(node, []).append(gpus)
    nodes = [Node(local.hosts[node], gpus) for node, gpus in by_node.items()]
    choices, notes = choose_gpus(requested, nodes)
    number = choices[list(by_node).index(local.nodes[local.comm.rank])][local.rank]
    if number is None:
        return torch.device("cpu"), tuple(notes)
    device = torch.device("cuda", number)
    torch.cuda.set_device(device)
    return device, tuple(notes)


def cap_threads(local: Local, threads: int | None = None) -> int:
    """Let torch use this rank's share of the cores it may run on; return the number of threads.

    ``OMP_NUM_THREADS`` wins where it is set, and over that the number that is asked for.
    """
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    elif not os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(fair_threads(local.cores[local.rank], local.cores))
    return torch.get_num_threads()


def crowd_notes(local: Local) -> list[str]:
    """Say of the first node with more ranks than cores what helps, if there is one; collective."""
    from mpi4py import MPI

    own = crowd_note(local.cores, MPI.get_vendor()[0], os.environ.keys())
    return list(filter(None, local.comm.allgather(own)))[:1]


def _cores() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _gpu_ids() -> list[str]:
    import torch

    if not torch.cuda.is_available():
        return []
    return [str(torch.cuda.get_device_properties(g).uuid) for g in range(torch.cuda.device_count())]
