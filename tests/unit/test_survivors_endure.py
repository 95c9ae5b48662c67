"""Who comes to the end, who goes on, and who is told why not; with a pretended MPI."""

import pytest
from mpi4py import MPI

from sundsbo_mpi.comm import survivors as module
from sundsbo_mpi.comm.survivors import ENABLED, Survivors, endure, fault_tolerance
from sundsbo_mpi.comm.waiting import Watchful
from sundsbo_mpi.errors import AgreedError, DivergedError


class Group(tuple):
    """Names of processes, in the order of their ranks."""

    def Translate_ranks(self, ranks, other):
        assert ranks is None
        return [other.index(process) for process in self]


class Comm:
    """One of these processes; the others do what ``future`` says.

    Args:
        processes: Their names.
        future: For every agreement to come: True, False, or the set of those who were lost by then.
        log: What was called, in order.
    """

    def __init__(self, processes, future, log):
        self.processes, self.future, self.log = processes, future, log
        self.rank, self.size = 0, len(processes)
        self.lost = set()
        self.left = False

    def Get_group(self):
        return Group(self.processes)

    def Revoke(self):
        self.log.append("revoke")

    def Agree(self, flag):
        assert not self.left, "nobody is there any more"
        self.log.append(f"agree {flag}")
        others = self.future.pop(0)
        if isinstance(others, set):
            self.lost |= others
            raise MPI.Exception(MPI.ERR_PROC_FAILED)
        return int(flag and others)

    def Shrink(self):
        self.log.append("shrink")
        self.left = True
        return Comm([p for p in self.processes if p not in self.lost], self.future, self.log)


@pytest.fixture(autouse=True)
def farewells(monkeypatch):
    """What is to be done when the interpreter exits."""
    found = []
    monkeypatch.setattr(module.world, "part_by", found.append)
    return found


@pytest.fixture
def log():
    return []


def run(log, future, *lives):
    """Live through ``lives``, of which each is a result or an error; return the outcome."""
    waiting, comm = list(lives), Comm("abcd", future, log)

    def live(here):
        log.append(here.agents)
        outcome = waiting.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    result = endure(Survivors(comm, tuple(range(4)), Watchful(comm)), live)
    assert not waiting
    return result


def failed():
    return MPI.Exception(MPI.ERR_IN_STATUS)


def test_an_end_that_all_have_come_to_is_the_end(log):
    assert run(log, [True], "done") == "done"
    assert log == [(0, 1, 2, 3), "agree 1"]


def test_an_error_is_made_known_before_anything_is_agreed(log):
    assert run(log, [{"c"}, True], failed(), "done") == "done"
    assert log == [(0, 1, 2, 3), "revoke", "agree 0", "shrink", (0, 1, 3), "agree 1"]


def test_whoever_has_come_to_the_end_goes_on_with_those_who_have_not(log):
    assert run(log, [{"b", "d"}, True], "early", "late") == "late"
    assert log == [(0, 1, 2, 3), "agree 1", "shrink", (0, 2), "agree 1"]


def test_numbers_are_kept_from_loss_to_loss(log):
    assert run(log, [{"b"}, {"c"}, True], failed(), failed(), "done") == "done"
    assert [entry for entry in log if isinstance(entry, tuple)] == [(0, 1, 2, 3), (0, 2, 3), (0, 3)]


@pytest.mark.parametrize("error", [AgreedError("all"), DivergedError("all")])
def test_an_error_of_all_is_raised_when_all_have_met_it(log, error):
    with pytest.raises(type(error), match="all"):
        run(log, [True], error)
    assert log == [(0, 1, 2, 3), "agree 1"]
    assert run(log, [{"d"}, True], error, "done") == "done"


def test_an_error_that_is_nobody_s_loss_is_raised(log):
    with pytest.raises(MPI.Exception) as caught:
        run(log, [False], failed())
    assert caught.value.Get_error_class() == MPI.ERR_IN_STATUS
    assert log == [(0, 1, 2, 3), "revoke", "agree 0", "shrink"]


def test_another_error_is_not_agreed_on(log):
    with pytest.raises(ZeroDivisionError):
        run(log, [], ZeroDivisionError())
    assert log == [(0, 1, 2, 3)]


def test_those_who_are_left_wait_for_each_other_before_they_exit(log, farewells):
    run(log, [{"a"}, True, {"b"}], failed(), "done")
    (farewell,) = farewells
    log.clear()
    farewell()
    assert log == ["agree 1"]


LAUNCHED = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", ENABLED: "1"}
"""What Open MPI's mpirun --with-ft ulfm leaves in the environment."""


@pytest.fixture
def launched(monkeypatch):
    """Be started in one way or another, by an Open MPI that can."""

    def launched(**changes):
        for name, value in (LAUNCHED | changes).items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)

    monkeypatch.setattr(module, "_offered", lambda: True)
    return launched


def test_only_a_job_that_was_started_for_it_can_do_without_an_agent(launched):
    launched()
    assert fault_tolerance() is None
    launched(**{ENABLED: None})
    assert "Open MPI's mpirun without fault tolerance" in fault_tolerance()
    launched(**{ENABLED: "0"})
    assert "mpirun --with-ft ulfm" in fault_tolerance()


@pytest.mark.parametrize(
    "signs", [{}, {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}, {"PMI_RANK": "0"}]
)
def test_other_launchers_cannot(launched, signs):
    launched(OMPI_COMM_WORLD_RANK=None, OMPI_COMM_WORLD_SIZE=None, **signs)
    assert fault_tolerance().endswith("start it with mpirun --with-ft ulfm")


def test_a_library_without_it_is_named(launched, monkeypatch):
    launched()
    monkeypatch.setattr(module, "_offered", lambda: False)
    assert MPI.get_vendor()[0] in fault_tolerance()
    assert "take Open MPI 5" in fault_tolerance()
