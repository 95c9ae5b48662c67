"""What Open MPI is told before it starts."""

import pytest

from sundsbo_mpi.comm import openmpi
from sundsbo_mpi.comm.openmpi import LIBFABRIC, TCP, WINDOWS

OPEN_MPI_5 = ("Open MPI", (5, 0, 11))


def test_all_of_it_where_nothing_is_set():
    assert openmpi.settings({"PATH": "/bin"}, *OPEN_MPI_5) == WINDOWS | TCP | LIBFABRIC


def test_other_libraries_are_told_nothing():
    assert openmpi.settings({}, "MPICH", (5, 0, 1)) == {}


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("OMPI_MCA_osc", TCP | LIBFABRIC),
        *((name, WINDOWS | LIBFABRIC) for name in TCP),
        ("OMPI_MCA_btl", WINDOWS | TCP),
        ("OMPI_MCA_btl_ofi_mode", WINDOWS | TCP),
        ("OMPI_MCA_btl_tcp_if_include", WINDOWS | TCP | LIBFABRIC),
    ],
)
def test_what_the_user_has_set_is_the_users(name, left):
    assert openmpi.settings({name: "1"}, *OPEN_MPI_5) == left


def test_what_older_versions_are_built_with_is_left_to_the_sites_files():
    assert openmpi.settings({}, "Open MPI", (4, 1, 6)) == WINDOWS | TCP
