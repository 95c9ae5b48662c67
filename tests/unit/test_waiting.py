"""Waiting without blocking: for what is not there yet, and no longer than it may come."""

import gc
import weakref

import numpy as np
import pytest
from mpi4py import MPI

from sundsbo_mpi.comm.waiting import EAGER_LOOKS, FEW_LOOKS, PATIENT, SPARING, Watchful


class Request:
    """Complete after some looks at it; false from then on, as those of MPI are."""

    def __init__(self, looks, error=None):
        self.looks, self.error = looks, error
        self.buffer = np.zeros(3)

    def __bool__(self):
        return self.looks > 0

    def Test(self):
        if self.error is not None:
            raise self.error
        self.looks -= 1
        return self.looks <= 0


class Comm:
    """Revoked after some questions whether it is."""

    def __init__(self, questions=10**9):
        self.questions = questions

    def Is_revoked(self):
        self.questions -= 1
        return self.questions < 0

    def Meet(self, *arguments):
        self.met = ("blocking", *arguments)

    def Imeet(self, *arguments):
        self.met = ("nonblocking", *arguments)
        self.request = Request(3)
        return self.request

    def Inever(self):
        self.request = Request(10**9)
        return self.request


def test_all_requests_are_looked_at_until_they_are_complete():
    requests = [Request(looks) for looks in (1, EAGER_LOOKS + 3, 5)]
    Watchful(Comm()).all(requests)
    assert [request.looks for request in requests] == [0, 0, 0]


def test_whoever_is_sparing_looks_a_few_times_and_then_leaves_the_core_to_others(monkeypatch):
    paused = []
    monkeypatch.setattr("time.sleep", paused.append)
    SPARING.all([Request(looks) for looks in (1, FEW_LOOKS, 1)])
    assert paused == []
    requests = [Request(looks) for looks in (3, FEW_LOOKS + 2, 9)]
    SPARING.all(requests)
    assert [request.looks for request in requests] == [0, 0, 0]
    assert paused == [min(5e-5 * 2**n, 1e-3) for n in range(2 + FEW_LOOKS + 1 + 8 - FEW_LOOKS)]
    SPARING.all([Request(FEW_LOOKS + 2)])
    assert paused[-1] == paused[0]  # every wait begins anew


def test_a_communicator_that_is_revoked_ends_the_wait():
    with pytest.raises(MPI.Exception) as caught:
        Watchful(Comm(questions=2)).all([Request(1), Request(10**9)])
    assert caught.value.Get_error_class() == MPI.ERR_REVOKED


def test_what_is_complete_needs_no_communicator():
    Watchful(Comm(questions=0)).all([Request(1), Request(1)])


def test_an_error_of_a_request_is_raised():
    error = RuntimeError("in status")
    with pytest.raises(RuntimeError, match="in status"):
        Watchful(Comm()).all([Request(5), Request(5, error)])


@pytest.mark.parametrize(
    ("waiting", "way"),
    [(PATIENT, "blocking"), (SPARING, "blocking"), (Watchful(Comm()), "nonblocking")],
)
def test_an_operation_is_called_by_its_name(waiting, way):
    comm = Comm()
    waiting.do(comm, "Meet", 1, "two")
    assert comm.met == (way, 1, "two")
    if way == "nonblocking":
        assert comm.request.looks == 0


def give_up(wait, *arguments):
    """Wait until the communicator is revoked."""
    with pytest.raises(MPI.Exception):
        wait(*arguments)


def test_buffers_live_as_long_as_mpi_may_write_to_them():
    watch, comm = Watchful(Comm(questions=5)), Comm()
    requests = [Request(2), Request(10**9)]
    for request in requests:
        watch.keep(request)
    watch.all(requests[:1])
    give_up(watch.all, requests)
    give_up(watch.do, comm, "Never")
    buffers = [weakref.ref(r.buffer) for r in (*requests, comm.request)]
    watch = Watchful(Comm(), watch)
    watch._before.keep(Request(1))
    del request, requests, comm
    gc.collect()
    assert [buffer() is None for buffer in buffers] == [True, False, False]
