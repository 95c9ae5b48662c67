"""Phases of an agent's time, on a clock that the test turns."""

import pytest

from sundsbo_mpi import clock as module
from sundsbo_mpi.clock import PHASES, Clock


@pytest.fixture
def turn(monkeypatch):
    """Set the time."""
    now = [100.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: now[0])

    def turn(seconds):
        now[0] += seconds

    return turn


def test_seconds_are_added_by_phase(turn):
    clock = Clock()
    clock.start()
    for _ in range(2):
        with clock("gradient"):
            turn(3.0)
        turn(0.5)
        with clock("evaluation"):
            turn(1.0)
    assert clock.seconds == dict.fromkeys(PHASES, 0.0) | {"gradient": 6.0, "evaluation": 2.0}
    assert (clock.wall, clock.training) == (9.0, 7.0)


def test_a_phase_that_ends_badly_counts_too(turn):
    clock = Clock()

    def fail():
        turn(2.0)
        raise KeyError

    with pytest.raises(KeyError), clock("wait"):
        fail()
    assert clock.seconds["wait"] == 2.0


def test_work_that_was_only_queued_counts_in_the_phase_that_queued_it(turn):
    clock = Clock(settle=lambda: turn(7.0))
    with clock("mix"):
        turn(1.0)
    assert clock.seconds["mix"] == 8.0


def test_a_listener_hears_of_every_phase_inner_ones_first(turn):
    clock, heard = Clock(), []
    clock.listener = lambda *phase: heard.append(phase)
    with clock("evaluation"):
        turn(1.0)
        with clock("mix"):
            turn(2.0)
    assert heard == [("mix", 101.0, 103.0), ("evaluation", 100.0, 103.0)]


def test_other_phases_are_refused():
    with pytest.raises(KeyError):
        Clock()("lunch")
