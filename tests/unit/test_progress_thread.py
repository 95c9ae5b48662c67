"""The thread that moves messages: when it works, when it rests, and how it ends."""

import threading
import time
from types import SimpleNamespace

import pytest

from sundsbo_mpi.comm import progress as module
from sundsbo_mpi.comm.progress import Progress, require_overlap
from sundsbo_mpi.errors import UsageError

PATIENCE_SECONDS = 20


class Moving:
    """Counts its calls; nothing is left after some of them."""

    def __init__(self, enough=10**9, error=None):
        self.calls, self.enough, self.error = 0, enough, error
        self.inside = False

    def __call__(self):
        self.inside = True
        self.calls += 1
        time.sleep(1e-4)
        self.inside = False
        if self.error is not None:
            raise self.error
        return self.calls >= self.enough

    def wait_for(self, calls):
        began = time.monotonic()
        while self.calls < calls and time.monotonic() - began < PATIENCE_SECONDS:
            time.sleep(1e-3)
        assert self.calls >= calls


@pytest.fixture
def begin():
    """Make a Progress that is closed in the end."""
    made = []

    def begin(move):
        made.append(Progress(move))
        return made[-1]

    yield begin
    for progress in made:
        progress.close()


def test_it_works_inside_the_block_only(begin):
    moving = Moving()
    progress = begin(moving)
    for _ in range(20):
        with progress:
            moving.wait_for(moving.calls + 2)
        assert not moving.inside
        seen = moving.calls
        time.sleep(1.5 * module.LONGEST_PAUSE)
        assert moving.calls == seen


def test_it_rests_when_nothing_is_left_and_works_again_in_the_next_block(begin):
    moving = Moving(enough=3)
    progress = begin(moving)
    with progress:
        moving.wait_for(3)
        time.sleep(5e-3)
    assert moving.calls == 3
    with progress:
        moving.wait_for(4)


def test_blocks_that_are_over_at_once_do_no_harm(begin):
    moving = Moving()
    progress = begin(moving)
    for _ in range(200):
        with progress:
            pass
        assert not moving.inside


def test_pauses_are_a_share_of_the_block_so_far_within_bounds(begin, monkeypatch):
    now, slept = 5.0, []

    def sleep(seconds):
        slept.append(seconds)
        time.sleep(1e-4)

    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now, sleep=sleep))
    moving = Moving()
    progress = begin(moving)
    for _ in range(2):
        with progress:
            for passed, pause in ((0, 1e-4), (4e-3, 1e-3), (4e-3, 2e-3), (10, 4e-3)):
                now += passed
                moving.wait_for(moving.calls + 3)
                assert slept[-1] == pytest.approx(pause)


def test_what_goes_wrong_is_raised_where_the_block_ends(begin):
    moving = Moving(error=RuntimeError("the network is gone"))
    progress = begin(moving)
    with pytest.raises(RuntimeError, match="the network is gone"), progress:
        moving.wait_for(1)
    assert moving.calls == 1


def test_the_thread_ends_and_keeps_no_program_alive():
    progress = Progress(Moving())
    (thread,) = (t for t in threading.enumerate() if t.name == "progress")
    assert thread.daemon
    progress.close()
    assert not thread.is_alive()


def test_overlap_is_not_promised_where_threads_may_not_take_turns(monkeypatch):
    monkeypatch.setattr(module, "threads_may_take_turns", lambda: True)
    require_overlap("always")
    monkeypatch.setattr(module, "threads_may_take_turns", lambda: False)
    require_overlap("auto")
    require_overlap("never")
    with pytest.raises(UsageError, match=r"--overlap always, but .*MPI4PY_RC_THREAD_LEVEL"):
        require_overlap("always")
