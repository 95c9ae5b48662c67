"""The MPI world: initialise it or say why not, and find one's place in it."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sundsbo_mpi.comm import openmpi
from sundsbo_mpi.comm.launcher import HYDRA, OPENMPI_MPIRUN, Launcher, find_launcher
from sundsbo_mpi.comm.placement import Crowd, Node, crowded, fair_threads, place
from sundsbo_mpi.errors import UsageError, unknown

if TYPE_CHECKING:
    import torch
    from mpi4py import MPI


def load_mpi() -> Any:
    """Import mpi4py.MPI without initialising MPI; must come before any other import of it.

    Raises:
        UsageError: there is no MPI library.
    """
    import mpi4py

    mpi4py.rc.initialize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise UsageError(
            "no MPI library found (mpi4py cannot load libmpi): install one with "
            "pip install 'sundsbo-mpi[openmpi]', or load your site's (module load openmpi), or "
            "add the folder of libmpi.so to LD_LIBRARY_PATH."
        ) from error
    return MPI


def start_mpi() -> MPI.Intracomm:
    """Initialise MPI with one communicating thread at a time and return COMM_WORLD.

    Collective over all processes of the job.  ``MPI4PY_RC_THREAD_LEVEL`` overrides the thread
    level.  Unless MPI is initialised already, variables that Open MPI reads are set in this
    process's environment (``comm.openmpi``).  MPI is finalised when the interpreter exits.

    Raises:
        UsageError: there is no MPI library, or it is not the launcher's.
    """
    mpi = load_mpi()
    launcher = find_launcher()
    (vendor, version), library = mpi.get_vendor(), mpi.Get_library_version()
    # Before MPI_Init: MPICH without PMIx aborts there, in C, when it finds a PMIx launcher.
    if not mpi.Is_initialized():
        if complaint := mismatch(vendor, library, launcher):
            raise UsageError(complaint)
        os.environ.update(openmpi.settings(os.environ, vendor, version))
        mpi.Init_thread(_thread_level(mpi))
        atexit.register(_finalise, mpi)
    if complaint := lonely(vendor, launcher, mpi.COMM_WORLD.size):
        raise UsageError(complaint)
    world: MPI.Intracomm = mpi.COMM_WORLD
    return world


def library_version() -> str:
    """Return the first line of the MPI library's description of itself."""
    from mpi4py import MPI

    return MPI.Get_library_version().strip("\0\n ").splitlines()[0]


def mismatch(vendor: str, library: str, launcher: Launcher) -> str | None:
    """Say why a library (vendor and version string) cannot work under a launcher, if it cannot."""
    pmix = "pmix" in library.lower()
    if launcher.name == OPENMPI_MPIRUN and vendor != "Open MPI" and not pmix:
        belongs = "to Open MPI"
    elif launcher.pmix and vendor == "MPICH" and not pmix:
        belongs = "to libraries that speak PMIx, unlike this one"
    elif launcher.name == HYDRA and vendor == "Open MPI" and launcher.size != 1:
        belongs = "to MPICH"
    else:
        return None
    return (
        f"mpi4py uses {vendor}, but the job was started by {launcher.name}, which belongs "
        f"{belongs}: {_remedy(vendor, launcher)}."
    )


def lonely(vendor: str, launcher: Launcher, size: int) -> str | None:
    """Say that the processes did not find each other, if the launcher started more than one."""
    if size > 1 or launcher.size is None or launcher.size == 1:
        return None
    return (
        f"{launcher.name} started {launcher.size} processes, but in {vendor} each is rank 0 of 1: "
        f"the launcher and the library do not belong together; {_remedy(vendor, launcher)}."
    )


def _remedy(vendor: str, launcher: Launcher) -> str:
    if launcher.name in (OPENMPI_MPIRUN, HYDRA):
        return f"use the mpirun of {vendor} (with a wheel: the one beside this python)"
    plugin = "pmix" if vendor == "Open MPI" else "pmi2"
    return f"use the mpirun of {vendor}, or try srun --mpi={plugin}"


def _thread_level(mpi: Any) -> int:
    levels = {
        "single": mpi.THREAD_SINGLE,
        "funneled": mpi.THREAD_FUNNELED,
        "serialized": mpi.THREAD_SERIALIZED,
        "multiple": mpi.THREAD_MULTIPLE,
    }
    asked = os.environ.get("MPI4PY_RC_THREAD_LEVEL", "serialized").lower()
    if asked not in levels:
        raise unknown("thread level in MPI4PY_RC_THREAD_LEVEL", asked, levels)
    return int(levels[asked])


def _finalise(mpi: Any) -> None:
    """Finalise at exit: mpi4py leaves that to us since it did not initialise."""
    if not mpi.Is_finalized():
        mpi.Finalize()


def part_by(farewell: Callable[[], object]) -> None:
    """Do something else than MPI_Finalize when the interpreter exits; local."""
    atexit.unregister(_finalise)
    atexit.register(farewell)


@dataclass(frozen=True)
class Local:
    """Where this rank is: its place on its node, and on which node every rank is."""

    comm: MPI.Intracomm
    rank: int
    """Rank among those of the same node, which share memory."""
    size: int
    hosts: tuple[int, ...]
    """For every rank the lowest rank on its node: equal numbers share memory."""
    names: tuple[str, ...]
    """For every rank the name of its node."""
    cores: tuple[frozenset[int], ...]
    """For every rank of this node the cores it may run on."""


def local(comm: MPI.Intracomm) -> Local:
    """Find out which ranks share this node, and which cores each of them may use; collective."""
    from mpi4py import MPI

    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    place_here = (node.bcast(comm.rank), MPI.Get_processor_name())
    hosts, names = zip(*comm.allgather(place_here), strict=True)
    cores = tuple(node.allgather(_cores()))
    here = Local(comm, node.rank, node.size, hosts, names, cores)
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
    for host, gpus in zip(local.hosts, local.comm.allgather(found), strict=True):
        by_node.setdefault(host, []).append(gpus)
    nodes = [Node(local.names[host], gpus) for host, gpus in by_node.items()]
    choices, notes = place(requested, nodes)
    number = choices[list(by_node).index(local.hosts[local.comm.rank])][local.rank]
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


def oversubscription(local: Local) -> Crowd | None:
    """Say so if this node has more ranks than cores, and which environment variables help."""
    from mpi4py import MPI

    return crowded(local.cores, MPI.get_vendor()[0], os.environ.keys())


def _cores() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _gpu_ids() -> list[str]:
    import torch

    if not torch.cuda.is_available():
        return []
    return [str(torch.cuda.get_device_properties(g).uuid) for g in range(torch.cuda.device_count())]
