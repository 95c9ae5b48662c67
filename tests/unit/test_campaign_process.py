"""A launcher ends with its campaign, and no second one writes the same files meanwhile."""

import os
import signal
import subprocess
import sys
import time

import pytest

from sundsbo_mpi.campaign.process import alone, orderly_end, start
from sundsbo_mpi.errors import UsageError

RUN = """
import sys
from pathlib import Path
from sundsbo_mpi.campaign.process import alone, orderly_end, start
here = Path(sys.argv[1])
child = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
with orderly_end(), alone(here):
    start([sys.executable, "-c", child], here / "log")
"""


@pytest.fixture
def reproduction(tmp_path):
    """Start a reproduction whose run sleeps; return it and the run's number."""
    process = subprocess.Popen([sys.executable, "-c", RUN, tmp_path])
    log = tmp_path / "log"
    wait_for(lambda: log.exists() and log.read_text().endswith("\n"))
    child = int(log.read_text())
    yield process, child
    process.kill()
    process.wait()
    if alive(child):
        os.kill(child, signal.SIGKILL)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def free(directory):
    try:
        with alone(directory):
            return True
    except UsageError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_launcher_too(reproduction, tmp_path, number):
    process, child = reproduction
    with pytest.raises(UsageError, match="another command is starting runs"), alone(tmp_path):
        pass
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert not alive(child)
    assert free(tmp_path)


def test_the_lock_holds_for_as_long_as_the_launcher(reproduction, tmp_path):
    process, child = reproduction
    process.kill()
    process.wait()
    assert not free(tmp_path)
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: free(tmp_path))


def test_any_exception_ends_the_launcher(tmp_path):
    def fail(*_):
        raise RuntimeError("anything")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, 1)
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    try:
        with pytest.raises(RuntimeError, match="anything"):
            start([sys.executable, "-c", child], tmp_path / "log")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    said = (tmp_path / "log").read_text()
    assert not said or not alive(int(said))


def test_signals_are_left_as_they_were():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
    try:
        with orderly_end():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
