"""A run that is killed at any moment leaves a file that opens and shows its rows."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from logged_disks import FLUSH, Disks, backwards, states
from synthetic_run import plan, resumption, row
from test_runfile import assert_holds

from sundsbo_mpi.runfile import Event, RunFile, placing, read_final, read_run, repair


def logged_run(path, planned, disks):
    """Return the log of a whole run and its length after the schema and after each row."""
    run = RunFile.create(path, planned)
    log, marks = disks.made[-1].log, [disks.published[-1][1][-1]]
    for index in range(planned.rows):
        run.append(row(index, planned))
        marks.append(len(log))
    if planned.save_final:
        for variable, dimension in planned.variables.items():
            for agent in range(planned.agents):
                run.write_final(variable, agent, np.full(dimension, agent))
    run.finish("finished")
    run.close()
    return log, marks


# A long attribute and many metrics force HDF5 to spread the schema over several blocks.
WIDE = plan(
    rows=2,
    task_metrics=tuple(f"metric_{number:02}" for number in range(20)),
    attributes={"config": '{"words": "' + "x" * 70_000 + '"}'} | {f"a{i}": i for i in range(30)},
)


PLANS = {"plain": plan(), "final": plan(rows=2, save_final=True), "wide": WIDE}


@pytest.mark.parametrize("order", [list, backwards], ids=["in order", "backwards"])
@pytest.mark.parametrize("planned", PLANS.values(), ids=PLANS)
def test_every_prefix_of_the_writes_shows_the_rows_flushed_by_then(
    tmp_path, monkeypatch, planned, order
):
    log, marks = logged_run(tmp_path / "a.h5", planned, Disks(monkeypatch))
    path = tmp_path / "prefix.h5"
    seen = []
    for changes, content in enumerate(states(order(log))):
        if changes < marks[0] or (seen and log[changes - 1] is FLUSH):
            continue
        path.write_bytes(content)
        data = read_run(path)
        flushed = sum(mark <= changes for mark in marks) - 1
        # A row counts from some change within its append on, and never before its values.
        assert flushed <= data.rows <= flushed + (changes not in marks), changes
        assert_holds(data, data.rows, planned)
        seen.append((data.rows, data.status))
    assert len(seen) > 50
    running = [(rows, "running") for rows in range(planned.rows + 1)]
    assert list(dict.fromkeys(seen)) == [*running, (planned.rows, "finished")]
    if planned.save_final:
        expected = np.arange(planned.agents, dtype=planned.dtype)
        assert all((expected == v.T).all() for v in read_final(path).values())


def test_nothing_has_the_final_name_before_it_is_readable(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    fill = placing.store

    def watched(file, contents, source=None):
        assert not path.exists()
        fill(file, contents, source)
        (hidden,) = tmp_path.iterdir()
        assert hidden.name.startswith(".a.h5.")
        assert not path.exists()

    monkeypatch.setattr(placing, "store", watched)
    RunFile.create(path, plan()).close()
    assert [found.name for found in tmp_path.iterdir()] == ["a.h5"]


def published(path, disks, wrote):
    """Return the log of the file that has just taken the name, and its length at that moment.

    It must have been on the disk as a whole, and the file before, of ``wrote`` changes, untouched.
    """
    target, lengths = disks.published[-1]
    assert target == path
    assert disks.made[-1].synced == lengths[-1], "named before the disk had everything"
    nothing = {FLUSH, (len(list(states(disks.made[-2].log[:wrote]))[-1]), None)}
    assert set(disks.made[-2].log[wrote : lengths[-2]]) <= nothing, "the old file was written to"
    return disks.made[-1].log, lengths[-1]


def reopened(path, iteration=20, **changes):
    return RunFile.resume(path, resumption(iteration, **changes))


def test_a_file_that_is_resumed_has_its_old_or_its_new_content(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    disks = Disks(monkeypatch)
    with contextlib.closing(RunFile.create(path, plan(save_final=True))) as run:
        for index in range(5):
            run.append(row(index))
        run.finish("interrupted")
    wrote = len(disks.made[-1].log)
    with contextlib.closing(reopened(path)) as run:
        log, length = published(path, disks, wrote)
        for index in range(3, 6):
            run.append(row(index))
    seen = []
    for changes, content in enumerate(states(log)):
        if changes >= length:
            (tmp_path / "prefix.h5").write_bytes(content)
            data = read_run(tmp_path / "prefix.h5")
            assert_holds(data, data.rows)
            assert [e.kind for e in data.events] == ["resumed"]
            seen.append(data.rows)
    assert sorted(set(seen)) == [3, 4, 5, 6]
    assert seen == sorted(seen)


def test_an_event_leaves_the_old_or_the_new_file(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    disks = Disks(monkeypatch)
    with contextlib.closing(RunFile.create(path, plan(save_final=True))) as run:
        for index in range(3):
            run.append(row(index))
        run.write_final("x", 1, np.arange(4))
        wrote = len(disks.made[-1].log)
        run.note([Event(20, "skipped", "iteration 20 was skipped")])
        log, length = published(path, disks, wrote)
        run.append(row(3))
    for changes, content in enumerate(states(log)):
        if changes >= length:
            (tmp_path / "prefix.h5").write_bytes(content)
            data = read_run(tmp_path / "prefix.h5")
            assert data.rows in (3, 4)
            assert_holds(data, data.rows)
            assert [e.sentence for e in data.events] == ["iteration 20 was skipped"]
            np.testing.assert_array_equal(read_final(tmp_path / "prefix.h5")["x"][1], np.arange(4))


@pytest.mark.parametrize("change", ["resume", "note", "repair"])
@pytest.mark.parametrize("moment", ["written", "synced", "named"])
def test_a_copy_that_cannot_be_finished_leaves_the_file_as_it_was(
    tmp_path, monkeypatch, change, moment
):
    path = tmp_path / "a.h5"
    run = RunFile.create(path, plan())
    run.append(row(0))
    if change != "note":
        run.close()
    before = path.read_bytes()

    class Killed(BaseException):
        pass

    def kill(*_, **__):
        raise Killed

    place, name = {
        "written": (placing, "store"),
        "synced": (placing.Disk, "sync"),
        "named": (Path, "replace"),
    }[moment]
    monkeypatch.setattr(place, name, kill)
    with pytest.raises(Killed):
        {
            "resume": lambda: reopened(path, 0),
            "note": lambda: run.note([Event(0, "odd", "said")]),
            "repair": lambda: repair(path, path, overwrite=True),
        }[change]()
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["a.h5"]
    run.close()


WRITER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from synthetic_run import plan, row
from sundsbo_mpi.runfile import RunFile
planned = plan(rows=100_000)
run = RunFile.create(sys.argv[1], planned)
for index in range(planned.rows):
    run.append(row(index))
    print(index + 1, flush=True)
"""


def test_a_killed_run_keeps_every_row_it_has_told_of(tmp_path):
    path = tmp_path / "a.h5"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    with writer:
        for line in writer.stdout:
            if int(line) == 50:
                writer.kill()
                break
        told = max([50, *(int(line) for line in writer.stdout if line.endswith(b"\n"))])
    assert writer.returncode == -signal.SIGKILL
    data = read_run(path)
    assert data.status == "running"
    assert told <= data.rows <= told + 1
    assert_holds(data, data.rows)
