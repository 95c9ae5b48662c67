"""A process that hangs ends, and says where; one that does not is left alone.

Every case is a program of its own, since most of them end it.
"""

import os
import subprocess
import sys

import pytest

TIME_LIMIT = 60
PROGRAM = """
import ctypes, faulthandler, threading, time
from sundsbo_mpi.ranks import watchdog
from sundsbo_mpi.ranks.watchdog import Watchdog

watchdog.LINGER_SECONDS = watchdog.MARGIN_SECONDS = 0.2

def wait_for_ever():
    threading.Event().wait()

def hold_the_interpreter(seconds=10**6):
    ctypes.PyDLL(None).sleep(seconds)

"""


def run(*lines, **changes):
    """Run the lines after those of PROGRAM."""
    program = PROGRAM + "\n".join(lines)
    return subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | changes,
        timeout=TIME_LIMIT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_thread_that_waits_for_ever_ends_the_process_with_its_stack():
    rank = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "3"}
    result = run("dog = Watchdog(0.3)", "dog.rearm(7)", "wait_for_ever()", **rank)
    assert result.returncode == 1
    first, *stack = result.stderr.splitlines()
    assert "no progress for 0.3 s in iteration 7" in first
    assert "--comm-timeout" in first
    assert all(line.startswith("[rank 2, ") for line in (first, *stack))
    assert any("in wait_for_ever" in line for line in stack)


def test_a_thread_that_never_lets_go_of_the_interpreter_ends_the_process_too():
    result = run("dog = Watchdog(0.3)", "hold_the_interpreter()")
    assert result.returncode == 1
    assert "hold_the_interpreter" in result.stderr


def test_the_time_of_an_iteration_begins_anew_with_each():
    """Whatever the thread's own clock says: it is the watched thread that moves it."""
    result = run(
        "now, looks = 0.0, threading.Event()",
        "def clock():",
        "    looks.set()",
        "    return now",
        "watchdog.time.monotonic = clock",
        "dog = Watchdog(0.1)",
        "for k in range(5):",
        "    now += 0.09",
        "    dog.rearm(k)",
        "    looks.clear()",
        "    looks.wait()",
        "print('alive', flush=True)",
        "now += 0.11",
        "wait_for_ever()",
    )
    assert result.stdout == "alive\n"
    assert result.returncode == 1
    assert "in iteration 4" in result.stderr


@pytest.mark.parametrize("meanwhile", ["time.sleep(2)", "hold_the_interpreter(2)"])
def test_it_pauses(meanwhile):
    lines = ("dog = Watchdog(0.5)", "with dog.paused():", f"    {meanwhile}")
    result = run(*lines, "dog.close()", "print('alive')")
    assert (result.returncode, result.stdout, result.stderr) == (0, "alive\n", "")


@pytest.mark.parametrize("hang", ["wait_for_ever()", "hold_the_interpreter()"])
def test_it_watches_again_after_a_pause_that_ended_badly(hang):
    trouble = ("try:", "    with dog.paused(): 1 / 0", "except ZeroDivisionError: pass")
    result = run("dog = Watchdog(0.3)", *trouble, hang)
    assert result.returncode == 1


def test_without_a_limit_there_is_no_thread_and_others_keep_the_timer():
    result = run(
        "faulthandler.dump_traceback_later(0.5, exit=True)",
        "dog = Watchdog(0)",
        "dog.rearm(3)",
        "with dog.paused(): pass",
        "dog.close()",
        "assert threading.active_count() == 1",
        "wait_for_ever()",
    )
    assert result.returncode == 1
    assert "Timeout (0:00:00.500000)" in result.stderr


def test_closed_it_lets_the_program_go_on():
    alone = "print('alone' if threading.active_count() == 1 else 'watched')"
    result = run("dog = Watchdog(0.1)", "dog.close()", "time.sleep(0.7)", alone)
    assert (result.returncode, result.stdout, result.stderr) == (0, "alone\n", "")


def test_more_seconds_than_a_timer_can_be_set_for():
    result = run("dog = Watchdog(1e300)", "dog.rearm(0)", "dog.close()", "print('alive')")
    assert (result.returncode, result.stdout, result.stderr) == (0, "alive\n", "")
