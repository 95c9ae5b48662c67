"""What the launch script makes of signals and of the launcher's status; no MPI is started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "launch" / "local.sh"
TIME_LIMIT = 30
LATER_SECONDS = 2.2
"""A signal that comes so much later is another request."""

MPIRUN = f"""#!{sys.executable}
import os, signal, sys, time

def note(number, _frame):
    print(signal.Signals(number).name, flush=True)

for name in ("HUP", "INT", "USR1", "USR2", "TERM"):
    signal.signal(signal.Signals["SIG" + name], note)
print(os.getsid(0), os.readlink("/proc/self/fd/0"), *sys.argv[1:], flush=True)
for _ in range({TIME_LIMIT} * 50):
    if os.path.exists("enough"):
        break
    time.sleep(0.02)
print("over", flush=True)
sys.exit(85)
"""


@pytest.fixture
def started(tmp_path):
    """Start the script with a launcher that tells its signals; it ends once ``enough`` exists."""
    launcher = tmp_path / "mpirun"
    launcher.write_text(MPIRUN)
    launcher.chmod(0o755)
    with subprocess.Popen(
        [SCRIPT, "3", "--a flag"],
        cwd=tmp_path,
        env=os.environ | {"BIN": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            (tmp_path / "enough").touch()


def first_line(process):
    return process.stdout.readline().rstrip("\n")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_every_signal_is_one_request_to_stop(started, tmp_path, name):
    first_line(started)
    started.send_signal(signal.Signals[name])
    assert first_line(started) == "SIGUSR1"
    started.send_signal(signal.Signals[name])  # the same, delivered twice
    started.send_signal(signal.SIGTERM)
    time.sleep(0.3)  # or the script would have nobody to pass on to what it should not
    (tmp_path / "enough").touch()
    assert started.wait(TIME_LIMIT) == 85
    assert first_line(started) == "over"


def test_a_signal_that_comes_with_the_end_changes_nothing(started, tmp_path):
    first_line(started)
    started.send_signal(signal.SIGSTOP)
    (tmp_path / "enough").touch()
    assert first_line(started) == "over"
    time.sleep(0.3)  # until it is
    started.send_signal(signal.SIGUSR1)
    started.send_signal(signal.SIGCONT)
    assert started.wait(TIME_LIMIT) == 85


def test_a_later_signal_of_the_same_kind_ends_the_job(started, tmp_path):
    first_line(started)
    started.send_signal(signal.SIGINT)
    assert first_line(started) == "SIGUSR1"
    time.sleep(LATER_SECONDS)
    started.send_signal(signal.SIGINT)
    assert [first_line(started), first_line(started)] == ["SIGINT", "SIGINT"]


def test_a_scheduler_that_warns_and_then_insists_leaves_the_time_it_gives(started, tmp_path):
    first_line(started)
    started.send_signal(signal.SIGUSR1)
    assert first_line(started) == "SIGUSR1"
    time.sleep(LATER_SECONDS)
    started.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    (tmp_path / "enough").touch()
    assert first_line(started) == "over"


def test_the_launcher_hears_of_a_terminal_only_through_the_script(started, tmp_path):
    session, given, *words = first_line(started).split(" ", maxsplit=4)
    assert int(session) != started.pid
    assert given == "/dev/null"
    assert words == ["-n", "3", f"{tmp_path}/sundsbo-mpi --a flag"]


@pytest.mark.parametrize(
    ("mpirun", "status"), [("exit 0", 0), ("exit 85", 85), ("kill -9 $$", 137), (None, 127)]
)
def test_the_status_is_the_launchers(tmp_path, mpirun, status):
    if mpirun is not None:
        (tmp_path / "mpirun").write_text(f"#!/bin/sh\n{mpirun}\n")
        (tmp_path / "mpirun").chmod(0o755)
    environment = os.environ | {"BIN": str(tmp_path)}
    result = subprocess.run(
        [SCRIPT, "3"], env=environment, capture_output=True, timeout=TIME_LIMIT, check=False
    )
    assert result.returncode == status
