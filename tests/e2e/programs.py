"""Whole programs, with a time limit that takes all their processes along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
TIME_LIMIT = 120
"""Seconds for one program; a hang is a failure."""

APART_SECONDS = 2.5
"""Between two signals of which the second is not taken for the first delivered twice."""

MAKING, STARTING, REPORTING = -1, -2, -3
"""What the task of these tests may be at besides the samples of iteration 0, 1, ..."""

LEFT_BY_LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "PRTE_", "MPI_LOCAL", "SLURM_", "PALS_", "MPI4PY_")


def environment(**changes):
    """The environment of a user who follows the README, on a machine of any size, even as root."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(LEFT_BY_LAUNCHERS)}
    return clean | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        # More jobs than one share the cores: a rank that waits gives up its core.
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
        **changes,
    }


def signalled(number, beginning, again=()):
    """Return what sends a running program a signal once the file of its beginning is there.

    More signals, ``again``, follow after as many seconds each as make them requests of their own.
    """

    def meanwhile(process):
        end = time.monotonic() + TIME_LIMIT
        while not beginning.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(number)
        for more in again:
            time.sleep(APART_SECONDS)
            process.send_signal(more)

    return meanwhile


def finish(arguments, cwd, meanwhile=lambda _process: None, **changes):
    """Run a program to its end, or kill its whole process group and fail."""
    process = subprocess.Popen(
        [str(a) for a in arguments],
        cwd=cwd,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    )
    try:
        meanwhile(process)
        out, err = process.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        for _ in range(2):  # a launcher, or its script, takes its ranks along on the second
            process.send_signal(signal.SIGINT)
            time.sleep(APART_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"not over after {TIME_LIMIT} s: {arguments}\n{out}\n{err}")
    # Open MPI's mpirun mixes NUL bytes into what it passes on.
    out, err = out.replace("\0", ""), err.replace("\0", "")
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def assert_refused(result, *words, status=2):
    """The program ended with ``status`` and one line of its own, which holds these words."""
    spoken = [line for line in result.stderr.splitlines() if line.startswith("sundsbo-mpi: ")]
    assert result.returncode == status, result.stderr + result.stdout
    assert len(spoken) == 1, result.stderr
    for word in words:
        assert word in spoken[0]
    assert "Traceback" not in result.stderr + result.stdout
