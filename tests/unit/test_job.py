"""The others are waited for when a job starts, but not for ever."""

import subprocess
import sys

import pytest

TIME_LIMIT = 60
PROGRAM = """
import threading, time
from sundsbo_mpi.ranks import job

job.START_SECONDS = 0.5

def wait_for_ever(*_):
    threading.Event().wait()

"""


def run(*lines):
    """Run the lines after those of PROGRAM."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + "\n".join(lines)],
        timeout=TIME_LIMIT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "hangs",
    [
        ("job.world.start_mpi = wait_for_ever",),
        ("job.world.start_mpi = lambda: None", "job.meet = wait_for_ever"),
    ],
    ids=["in MPI_Init", "in the first meeting"],
)
def test_a_rank_that_waits_for_a_dead_one_at_the_start_ends_with_its_stack(hangs):
    result = run(*hangs, "job.Tally = lambda comm: comm", "job.do_together(lambda _: None)")
    assert result.returncode == 1
    assert "wait_for_ever" in result.stderr
    assert "meet_all" in result.stderr


def test_what_follows_a_start_may_take_longer():
    result = run(
        "job.world.start_mpi, job.Tally = lambda: 7, lambda comm: comm",
        "job.meet = lambda *given: print(given)",
        "job.do_together(lambda comm: (time.sleep(1), print(comm)))",
    )
    assert (result.returncode, result.stdout) == (0, "(7, None)\n7\n")


def test_a_start_that_is_refused_is_over():
    result = run(
        "def refuse():",
        "    raise job.AgreedError('no')",
        "job.world.start_mpi = refuse",
        "try:",
        "    job.do_together(wait_for_ever)",
        "except job.AgreedError:",
        "    time.sleep(1)",
        "    print('refused')",
    )
    assert (result.returncode, result.stdout) == (0, "refused\n")
