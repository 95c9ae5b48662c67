"""What is told of a run, and that a run does not depend on who hears it."""

import errno
import os
import pty
import sys
from contextlib import suppress

import pytest
from synthetic_run import row

from sundsbo_mpi.running.progress import Reporter


def tell(reporter):
    """Tell all there is to tell of a run."""
    reporter.say("begins")
    with reporter:
        for k in range(3):
            reporter.advance(k)
            reporter.row(row(k))
        reporter.note("odd")
    reporter.say("ends")


@pytest.fixture
def listened(monkeypatch):
    """Let somebody else hear the standard error."""

    opened = []

    def listened(descriptor):
        opened.append(os.fdopen(descriptor, "w", buffering=1, encoding="utf-8"))
        monkeypatch.setattr(sys, "stderr", opened[-1])

    yield listened
    monkeypatch.undo()
    for file in opened:
        with suppress(OSError):  # of what could not be written
            file.close()


def gone():
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def left():
    """A terminal whose other end is closed."""
    reading, writing = pty.openpty()
    os.close(reading)
    return writing


@pytest.mark.parametrize("hearer", [gone, left, lambda: os.open("/dev/full", os.O_WRONLY)])
def test_a_run_goes_on_where_nobody_hears_of_it(listened, hearer):
    if not os.path.exists("/dev/full"):
        pytest.skip("the system has no /dev/full")
    listened(hearer())
    with pytest.raises(OSError, match=r"space|pipe|output"):
        print("hello", file=sys.stderr)
    tell(Reporter(True, 50))


class Disk:
    """A log on a disk that is full for a while."""

    def __init__(self):
        self.full, self.lines = True, []

    def write(self, text):
        if self.full:
            raise OSError(errno.ENOSPC, "full")
        self.lines += text.splitlines()

    def flush(self):
        pass

    def isatty(self):
        return False


def test_what_was_not_told_is_not_told_later(monkeypatch):
    disk = Disk()
    monkeypatch.setattr(sys, "stderr", disk)
    reporter = Reporter(True, 50)
    tell(reporter)
    disk.full = False
    reporter.say("there is room again")
    assert disk.lines == ["there is room again"]


def test_a_terminal_has_a_bar_and_a_log_has_lines(monkeypatch, capsys, listened):
    monkeypatch.setenv("TERM", "xterm")
    tell(Reporter(True, 50))
    tell(Reporter(False, 50))
    lines = capsys.readouterr().err.splitlines()
    assert [lines[0], *lines[-2:]] == ["begins", "note: odd", "ends"]
    reading, writing = pty.openpty()
    listened(writing)
    tell(Reporter(True, 50))
    shown = os.read(reading, 100000).decode()
    os.close(reading)
    assert "20/50" in shown
    assert "iteration 20/50" not in lines
    assert "note: odd" in shown
