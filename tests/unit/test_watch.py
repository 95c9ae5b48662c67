"""``sundsbo-mpi watch``: what is shown of a run that goes on, and when watching ends."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from measured_runs import configured, write
from printed import line
from synthetic_run import plan, row

from sundsbo_mpi.cli.watch import command
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.following import watching
from sundsbo_mpi.following.live_view import trend
from sundsbo_mpi.following.pace import pace, slowest_agent
from sundsbo_mpi.runfile import Event, RunFile, read_run


def watch(*arguments, status=0):
    words = [str(word) for word in arguments]
    done = CliRunner().invoke(
        command, words, env={"COLUMNS": "120"}, catch_exceptions=False, standalone_mode=False
    )
    assert done.return_value == status
    return done.output


@pytest.fixture
def ages(monkeypatch):
    """Say how many seconds ago files were last written."""

    def ages(seconds):
        for module in ("pace", "watching"):
            monkeypatch.setattr(f"sundsbo_mpi.following.{module}.age", lambda _run: seconds)

    return ages


def test_one_picture_of_a_running_job(tmp_path):
    gradient = (0.03, 0.03, 0.09)
    path = write(tmp_path / "a.h5", (10.0, 50.0), status="running", gradient=gradient)
    text = watch("--once", path)
    assert line(text, "status").startswith("status running, or killed (last written")
    assert "iteration 10 of 20 (50%), 2 of 3 evaluations" in text
    assert line(text, "sent") == "sent 10 kB per agent, 30 kB in all"
    # own work: gradient, pack and mix, 0.05 s, and 0.11 s of agent 2
    assert (
        line(text, "slowest") == "slowest agent 2 on node2, with 2.2 times the median of own work"
    )
    assert line(text, "test_accuracy ").split() == ["test_accuracy", "10", "50", "50", "49", "▁█"]
    assert line(text, "consensus/y ").split()[:4] == ["consensus/y", "0.5", "–", "0.3333"]


def test_the_pace_and_the_end(tmp_path, ages):
    run = read_run(write(tmp_path / "a.h5", (10.0, 50.0), status="running"))
    ages(0.25)  # wall_s is 0.75 and 1.75: 0.1 s per iteration, 10 are left
    going = pace(run)
    assert (going.done, going.iterations) == (10, 20)
    assert going.seconds == pytest.approx(0.1)
    assert going.left == pytest.approx(0.75)
    assert not going.silent
    ages(60.0)
    assert pace(run).silent
    assert pace(run).left == 0
    assert slowest_agent(run) == (0, 1.0)
    ended = pace(read_run(write(tmp_path / "b.h5")))
    assert (ended.left, ended.silent) == (0.0, False)


def test_the_pace_is_that_of_the_last_evaluations(tmp_path):
    planned = plan(rows=12)
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", planned)) as run:
        for index in range(10):
            wall = float(index if index < 5 else 4 + 10 * (index - 4))
            run.append(row(index, planned, wall_s=wall))
    assert pace(read_run(tmp_path / "a.h5")).seconds == pytest.approx(1.0)


@pytest.mark.parametrize("rows", [0, 1])
def test_before_there_is_a_pace(tmp_path, rows):
    path = write(tmp_path / "a.h5", (10.0,) * rows, status="running")
    assert np.isnan(pace(read_run(path)).seconds)
    text = watch("--once", path)
    assert f"iteration 0 of 20 (0%), {rows} of 3 evaluations" in text
    assert "nan" not in text


def test_silence_is_told(tmp_path, ages):
    path = write(tmp_path / "a.h5", (10.0, 50.0), status="running")
    ages(100.0)
    assert "is the job still there?" in watch("--once", path)
    finished = write(tmp_path / "b.h5")
    assert "is the job still there?" not in watch("--once", finished)


def test_the_file_is_waited_for_and_followed_to_the_end(tmp_path):
    path, planned = tmp_path / "a.h5", plan(rows=4)
    acts = iter(
        (
            lambda: None,
            lambda: acts_on.append(RunFile.create(path, planned)),
            lambda: acts_on[0].append(row(0, planned)),
            lambda: None,
            lambda: acts_on[0].append(row(1, planned)),
            lambda: acts_on[0].finish("finished"),
        )
    )
    acts_on = []
    looks = list(watching.follow(path, 100.0, lambda _seconds: next(acts)()))
    acts_on[0].close()
    seen = [None if run is None else (run.status, run.rows) for run in looks]
    running = [("running", rows) for rows in (0, 1, 1, 2)]
    assert seen == [None, None, *running, ("finished", 2)]


def test_a_run_whose_job_may_come_again_is_waited_for(tmp_path):
    config = configured(output__checkpoint="saved")
    path = write(tmp_path / "a.h5", status="interrupted", config=config)

    def go_on():
        with h5py.File(path, "r+") as file:
            file.attrs["status"] = "finished"

    acts = iter((lambda: None, go_on))
    looks = list(watching.follow(path, 100.0, lambda _seconds: next(acts)()))
    assert [run.status for run in looks] == ["interrupted", "interrupted", "finished"]
    # Nobody is to blame if it does not come.
    path = write(tmp_path / "b.h5", status="interrupted", config=config)
    assert list(watching.follow(path, 5.0, lambda _seconds: None))[-1].status == "interrupted"
    assert watch(path, "--patience", "0", status=1).count("once its job comes again") == 1


def test_patience_ends_and_begins_anew_with_every_evaluation(tmp_path):
    path, planned = tmp_path / "a.h5", plan()
    with contextlib.closing(RunFile.create(path, planned)) as run:
        slept = itertools.count()

        def sleep(seconds):
            if next(slept) == 3:
                run.append(row(0, planned))

        with pytest.raises(UsageError, match=r"waited 5 s for news .* iteration 0: was the job"):
            list(watching.follow(path, 5.0, sleep))
    assert next(slept) == 3 + 1 + 5
    with pytest.raises(UsageError, match=r"waited 5 s for '.*', which is not there"):
        list(watching.follow(tmp_path / "b.h5", 5.0, lambda _seconds: None))


def test_a_file_that_is_half_there_is_looked_at_again(tmp_path):
    path = write(tmp_path / "a.h5")
    whole = path.read_bytes()
    path.write_bytes(b"")
    tries = iter((lambda: None, lambda: path.write_bytes(whole)))
    looks = list(watching.follow(path, 100.0, lambda _seconds: next(tries)()))
    assert [run and run.status for run in looks] == [None, None, "finished"]
    path.write_bytes(b"")
    with pytest.raises(UsageError, match="cannot be read as an HDF5 file"):
        list(watching.follow(path, 100.0, lambda _seconds: None))


def test_an_old_file_that_has_not_changed_is_not_read_again(tmp_path, monkeypatch, ages):
    path = write(tmp_path / "a.h5", (10.0, 50.0), status="running")
    ages(100.0)
    reads = []
    monkeypatch.setattr(watching, "read_run", lambda path: reads.append(path) or read_run(path))
    reader = watching.Reader(path)
    assert reader.look() is reader.look()
    assert len(reads) == 1
    os.utime(path)
    reader.look()
    reader.look()
    assert len(reads) == 2
    ages(1.0)  # a change within the clock's tick would not show
    reader.look()
    assert len(reads) == 3


@pytest.mark.parametrize(("ending", "status"), [("finished", 0), ("interrupted", 1), ("failed", 1)])
def test_lines_through_a_pipe_and_the_status(tmp_path, ending, status):
    path = write(tmp_path / "a.h5", status=ending, config=configured())
    text = watch(path, status=status)
    assert text.splitlines()[0].startswith("sun-dsbo-gt, minibatch on hyper-cleaning, digits, 3")
    assert "iteration 20/20: test_accuracy 80, consensus y 0.25; 100 ms per iteration" in text
    assert text.splitlines()[-1].startswith(ending)
    assert "\x1b" not in text


def test_events_and_rows_are_told_once(tmp_path, monkeypatch):
    path, planned = tmp_path / "a.h5", plan()
    looks = [None, None]
    with contextlib.closing(RunFile.create(path, planned)) as run:
        for act in (
            lambda: run.append(row(0, planned)),
            lambda: run.note([Event(0, "resumed", "it goes on")]),
            lambda: run.append(row(1, planned)),
            lambda: run.finish("finished"),
        ):
            act()
            looks += [read_run(path)] * 2
    monkeypatch.setattr(watching, "follow", lambda *_arguments: iter(looks))
    told = watch(path).splitlines()
    assert [words.split(":")[0].split(",")[0] for words in told] == [
        f"waiting for '{path}' ...",
        "sun-dsbo-gt",
        "iteration 0/50",
        "iteration 0",
        "iteration 10/50",
        told[-1].split(":")[0],
    ]
    assert told[3].endswith("it goes on")
    assert told[-1].startswith("finished")


@pytest.mark.parametrize(
    ("curve", "drawn"),
    [
        ([0.0, 7.0], "▁█"),
        ([0.0, np.nan, 7.0], "▁ █"),
        ([5.0, 5.0], ""),
        ([np.nan], ""),
        (range(100), "▁▁▂▂▂▃▃▃▃▄▄▄▅▅▅▆▆▆▆▇▇▇██"),
    ],
)
def test_trends(curve, drawn):
    found = trend(np.array(curve, dtype=float))
    assert found == drawn


def test_a_logarithmic_trend():
    assert trend(np.array([1.0, 1e-7, 1e-3]), logarithmic=True)[1] == "▁"
    assert trend(np.array([1.0, 0.0]), logarithmic=True) == ""


def test_neither_mpi_nor_torch_nor_matplotlib_is_needed(tmp_path):
    import subprocess

    path = write(tmp_path / "a.h5")
    script = (
        "import sys\n"
        "for name in ('mpi4py', 'torch', 'matplotlib'): sys.modules[name] = None\n"
        f"sys.argv = ['sundsbo-mpi', 'watch', {str(path)!r}]\n"
        "from sundsbo_mpi.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
