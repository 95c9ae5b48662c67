"""Clocks that are set wrong on purpose, and put right by asking."""

import time

import pytest

from sundsbo_mpi.comm.alignment import align


@pytest.mark.parametrize(
    "place", [lambda rank: rank, lambda rank: rank % 2, lambda rank: min(rank, 1), lambda rank: 0]
)
def test_wrong_clocks_are_found_out(comm, place):
    hosts = [place(rank) for rank in range(comm.size)]
    wrong = 1000.0 * hosts[comm.rank]
    found = align(comm, hosts, lambda: time.perf_counter() + wrong)
    # In truth there is but one clock, as precise as it is.
    assert abs(found.offset + wrong) <= found.accuracy + 1e-9
    assert (found.accuracy == 0) == (hosts[comm.rank] == 0)
