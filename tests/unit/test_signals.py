"""What a signal does to a run: the first of a kind asks, and nothing has to be waited for."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from sundsbo_mpi.ranks import signals
from sundsbo_mpi.ranks.signals import SAME_SECONDS, STOPPING, stopping

USR1, TERM = signal.SIGUSR1, signal.SIGTERM


def actions():
    return [signal.getsignal(n) for n in STOPPING]


@pytest.mark.parametrize("number", STOPPING, ids=lambda n: n.name)
def test_the_first_signal_asks_and_says_its_name(number):
    before, asked, heard = actions(), [], threading.Event()

    def ask(name):
        asked.append(name)
        heard.set()

    with stopping(ask):
        os.kill(os.getpid(), number)
        assert heard.wait(60)
    assert asked == [number.name]
    assert actions() == before


def test_everything_is_as_before_when_the_block_fails():
    before, files, threads = actions(), os.listdir("/proc/self/fd"), threading.active_count()

    def fail():
        with stopping(lambda _name: None):
            assert all(new is not old for new, old in zip(actions(), before, strict=True))
            raise RuntimeError("trouble on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert actions() == before
    assert os.listdir("/proc/self/fd") == files
    assert threading.active_count() == threads
    assert signal.set_wakeup_fd(-1) == -1


def test_what_is_ignored_stays_ignored_and_other_handlers_are_left_alone():
    asked, rung = [], []
    former = signal.signal(signal.SIGUSR2, signal.SIG_IGN), signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        with stopping(asked.append):
            os.kill(os.getpid(), signal.SIGUSR2)
            os.kill(os.getpid(), signal.SIGALRM)
            os.kill(os.getpid(), signal.SIGALRM)
        assert signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR2, former[0])
        signal.signal(signal.SIGALRM, former[1])
    assert (asked, rung) == ([], [1, 1])


class EndedError(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize(
    ("came", "names", "status"),
    [
        # One request that was delivered twice, and a scheduler's second, stronger one.
        ([(USR1, 0), (USR1, 0.1), (USR1, SAME_SECONDS), (TERM, 9)], ["SIGUSR1", "SIGTERM"], None),
        ([(USR1, 0), (USR1, 0.1), (USR1, SAME_SECONDS + 0.1)], ["SIGUSR1"], 128 + USR1),
        ([(USR1, 0), (TERM, 5), (TERM, 6.1)], ["SIGUSR1", "SIGTERM"], 128 + TERM),
        ([(USR1, 0), (TERM, 5), (USR1, 5.5)], ["SIGUSR1", "SIGTERM"], 128 + USR1),
    ],
)
def test_what_comes_later_than_a_second_is_another_request(monkeypatch, came, names, status):
    asked, ended = [], []

    def end(code):
        ended.append(code)
        raise EndedError

    receiving, sending = os.pipe()
    os.write(sending, bytes([*(number for number, _ in came), signals.END]))
    times = iter([seconds for _, seconds in came])
    monkeypatch.setattr(signals.time, "monotonic", lambda: next(times))
    monkeypatch.setattr(signals.os, "_exit", end)
    try:
        signals._listen(receiving, asked.append, signals.STOPPING)
    except EndedError:
        pass
    finally:
        monkeypatch.undo()
        os.close(receiving)
        os.close(sending)
    assert asked == names
    assert ended == ([] if status is None else [status])


BLOCKED = """
import ctypes
from sundsbo_mpi.ranks import signals

signals.SAME_SECONDS = 0.0
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
with signals.stopping(lambda name: print(name, flush=True)):
    libc.pthread_mutex_lock(mutex)
    print("blocked", flush=True)
    libc.pthread_mutex_lock(mutex)  # in C for ever, like a call to MPI that nobody answers
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a zeroed mutex is glibc's unlocked one")
def test_a_thread_blocked_in_c_hinders_neither_the_first_signal_nor_the_second():
    command = [sys.executable, "-c", BLOCKED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "blocked\n"
            for number in (signal.SIGUSR1, signal.SIGTERM):
                process.send_signal(number)
                assert process.stdout.readline() == f"{number.name}\n"
            process.send_signal(signal.SIGUSR1)
            assert process.wait(60) == 128 + signal.SIGUSR1
        finally:
            process.kill()


def test_others_than_the_chosen_kinds_act_as_ever():
    asked, heard, usual = [], threading.Event(), signal.getsignal(TERM)

    def ask(name):
        asked.append(name)
        heard.set()

    with stopping(ask, signals.WARNING):
        assert signal.getsignal(TERM) is usual
        os.kill(os.getpid(), signal.SIGUSR2)
        assert heard.wait(60)
    assert asked == ["SIGUSR2"]
