"""What Open MPI is told before it starts."""

import pytest

from sundsbo_mpi.comm import openmpi

ALL = openmpi.WINDOWS | openmpi.NETWORKS | openmpi.TCP


@pytest.mark.parametrize("name", openmpi.WINDOWS | openmpi.NETWORKS)
def test_what_the_user_has_set_stays(name):
    assert openmpi.settings({}, 5) == ALL
    assert openmpi.settings({name: "rdma,self", "PATH": "/bin"}, 5) == {
        other: value for other, value in ALL.items() if other != name
    }


@pytest.mark.parametrize("name", openmpi.TCP)
def test_limits_of_tcp_are_all_the_users_where_one_is(name):
    assert openmpi.settings({name: "1000"}, 5) == openmpi.WINDOWS | openmpi.NETWORKS


def test_what_older_versions_are_built_with_is_left_to_the_sites_files():
    assert openmpi.settings({}, 4) == openmpi.WINDOWS | openmpi.TCP
