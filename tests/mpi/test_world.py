"""MPI as every rank starts it."""

import sys
import threading

from sundsbo_mpi.comm.launcher import find_launcher
from sundsbo_mpi.comm.world import start_mpi


def test_start_returns_the_world_that_the_launcher_started():
    world = start_mpi()
    launcher = find_launcher()
    assert launcher.name != "no launcher"
    assert (world.rank, world.size) == (launcher.rank, launcher.size)


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
