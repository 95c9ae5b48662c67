"""A disk that fails, a directory that vanishes, a file system without locks: said, nothing lost."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from synthetic_run import plan, resumption, row
from test_runfile import assert_holds, write

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import Event, RunFile, read_run, repair

FULL = f"""
import resource, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from synthetic_run import plan, row
from sundsbo_mpi.runfile import Event, RunFile
run = RunFile.create(sys.argv[1], plan(save_final=True))
for index in range(3):
    run.append(row(index))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
steps = [
    lambda: run.append(row(3)),
    lambda: run.append(row(3)),
    lambda: run.note([Event(30, "odd", "said")]),
    lambda: run.finish("failed"),
    run.close,
]
for step in steps[int(sys.argv[3]):]:
    try:
        step()
        print("done")
    except Exception as error:
        print(type(error).__name__, error)
"""


def on_a_full_disk(path, size, first=0):
    """Write a run in a process whose files may not reach beyond ``size`` bytes any more."""
    words = [sys.executable, "-c", FULL, str(path), str(size), str(first)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr  # HDF5 itself would crash at the end
    assert done.stderr == ""
    return done.stdout.splitlines()


# Below the size of the file, as on file systems that copy what is overwritten.
@pytest.mark.parametrize("size", [0, 9000, 10_000, 22_300])
def test_a_disk_that_is_full_in_mid_run_costs_the_row_alone(tmp_path, size):
    path = tmp_path / "a.h5"
    first, second, event, end, close = on_a_full_disk(path, size)
    assert first == (
        f"UsageError the run file '{path}' cannot be written any more: File too large; its 3 "
        "evaluations are kept: remove the cause and go on from the last checkpoint with "
        "'sundsbo-mpi resume', or run again."
    )
    assert first == second == event == end
    assert close == "done"
    data = read_run(path)
    assert data.status == "running"
    assert_holds(data, 3)
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


EVENT = f"""
import errno, os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from synthetic_run import plan, row
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import Event, RunFile

def full(*_):
    raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

run = RunFile.create(sys.argv[1], plan())
run.append(row(0))
sound, os.pwrite = os.pwrite, full
try:
    run.note([Event(0, "odd", "said")])
except UsageError as error:
    print(error)
os.pwrite = sound
run.append(row(1))
run.note([Event(0, "odd", "said")])
run.append(row(2))
run.close()
"""


def test_an_event_that_does_not_fit_leaves_the_file_to_be_written_further(tmp_path):
    path = tmp_path / "a.h5"
    words = [sys.executable, "-c", EVENT, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"cannot write '{path}': File too large; ")
    assert_holds(read_run(path), 3)
    assert len(read_run(path).events) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


def _fail(number, calls=0):
    """Return what fails after so many calls of the real thing."""
    real, left = os.pwrite, [calls]

    def write(*arguments):
        if left[0] <= 0:
            raise OSError(number, os.strerror(number))
        left[0] -= 1
        return real(*arguments)

    return write


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE])
@pytest.mark.parametrize("what", ["create", "resume", "repair"])
def test_a_copy_that_does_not_fit_leaves_everything_as_it_was(tmp_path, monkeypatch, what, number):
    path = tmp_path / "a.h5"
    if what != "create":
        write(path, rows=3, status=None)
    before = path.read_bytes() if path.exists() else b""
    monkeypatch.setattr("sundsbo_mpi.runfile.disk.os.pwrite", _fail(number, calls=20))
    with pytest.raises(UsageError, match=f"cannot write '{path}': {os.strerror(number)}; choose"):
        {
            "create": lambda: RunFile.create(path, plan()),
            "resume": lambda: RunFile.resume(path, resumption(20)),
            "repair": lambda: repair(path, path, overwrite=True),
        }[what]()
    assert (path.read_bytes() if path.exists() else b"") == before
    assert [p.name for p in tmp_path.iterdir()] == (["a.h5"] if before else [])


def test_whichever_write_fails_the_row_is_whole_or_does_not_count(tmp_path, monkeypatch):
    """Short of the last one, of the counter, the row does not count; then nothing fails."""
    counted = []
    for calls in range(200):
        path = tmp_path / f"{calls}.h5"
        with contextlib.closing(RunFile.create(path, plan())) as run:
            run.append(row(0))
            with pytest.MonkeyPatch.context() as failing:
                failing.setattr("sundsbo_mpi.runfile.disk.os.pwrite", _fail(errno.ENOSPC, calls))
                try:
                    run.append(row(1))
                except UsageError as error:
                    assert "No space left" in str(error)  # noqa: PT017
                    said = True
                else:
                    said = False
            # There is room again, but the file is as it was when the first write failed.
            with contextlib.suppress(UsageError):
                run.finish("failed")
        data = read_run(path)
        assert_holds(data, data.rows)
        assert data.status == ("running" if said else "failed")
        counted.append(data.rows)
        path.unlink()
        if not said:
            break
    assert len(counted) > 20
    assert sorted(counted) == counted
    assert counted[-1] == 2


def test_the_disk_is_waited_for(tmp_path, monkeypatch):
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", plan())) as run:
        run.append(row(0))
        waited = []
        monkeypatch.setattr("sundsbo_mpi.runfile.disk.os.fsync", waited.append)
        run.sync()
        assert len(waited) == 1

        def full(_):
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

        monkeypatch.setattr("sundsbo_mpi.runfile.disk.os.fsync", full)
        with pytest.raises(UsageError, match="Disk quota exceeded; its 1 evaluations are kept"):
            run.sync()
    assert_holds(read_run(tmp_path / "a.h5"), 1)


@pytest.mark.parametrize("how", ["folder removed", "file removed", "file replaced"])
def test_a_file_that_vanishes_in_mid_run(tmp_path, how):
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "a.h5"
    with contextlib.closing(RunFile.create(path, plan())) as run:
        run.append(row(0))
        if how == "folder removed":
            shutil.rmtree(folder)
        elif how == "file removed":
            path.unlink()
        else:
            (folder / "b.h5").write_bytes(b"precious")
            (folder / "b.h5").replace(path)
        for step in (lambda: run.append(row(1)), lambda: run.note([Event(0, "odd", "said")])):
            with pytest.raises(
                UsageError, match=r"was removed or replaced while.*--output NEW\.h5"
            ):
                step()
    assert (path.read_bytes() if path.exists() else b"precious") == b"precious"


def test_a_file_that_is_moved_is_written_on(tmp_path):
    path = tmp_path / "a.h5"
    with contextlib.closing(RunFile.create(path, plan())) as run:
        run.append(row(0))
        path.rename(tmp_path / "moved.h5")
        run.append(row(1))
    assert_holds(read_run(tmp_path / "moved.h5"), 2)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, 524])
def test_a_file_system_without_locks(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "a.h5"
    assert_holds(write(path, rows=3, status=None), 3)
    with contextlib.closing(RunFile.resume(path, resumption(20))) as run:
        assert not run.locked
        run.note([Event(20, "odd", "said")])
        run.append(row(3))
    assert_holds(read_run(path), 4)
    with contextlib.closing(RunFile.create(path, plan(), overwrite=True)) as run:
        assert not run.locked


def test_a_lock_that_is_refused_for_another_reason_is_no_lock(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EIO, "Input/output error")

    write(tmp_path / "a.h5", rows=3, status=None)
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(UsageError, match="Input/output error"):
        RunFile.create(tmp_path / "b.h5", plan())
    with pytest.raises(UsageError, match="Input/output error"):
        RunFile.resume(tmp_path / "a.h5", resumption(20))
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


def test_a_name_that_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.h5")
    for refused in (
        lambda: RunFile.create(tmp_path / "pipe.h5", plan(), overwrite=True),
        lambda: RunFile.resume(tmp_path / "pipe.h5", resumption(20)),
        lambda: read_run(tmp_path / "pipe.h5"),
        lambda: repair(tmp_path / "pipe.h5", tmp_path / "b.h5", overwrite=False),
    ):
        with pytest.raises(UsageError):
            refused()


def test_a_file_that_is_left_open_does_not_crash_the_process(tmp_path):
    """HDF5 asks for bytes until the very end of it."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from synthetic_run import plan, row; from sundsbo_mpi.runfile import RunFile\n"
        "run = RunFile.create(sys.argv[1], plan()); run.append(row(0)); raise KeyError('a bug')"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "a.h5")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.endswith("KeyError: 'a bug'\n")
    assert_holds(read_run(tmp_path / "a.h5"), 1)


def test_numbers_are_stored_as_they_are_checked(tmp_path):
    """Costs come as real numbers and are stored as integers: the check sum is of these."""
    costs = {name: value + 0.4 for name, value in row(0).agents.items()}
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", plan())) as run:
        run.append(row(0, agents=costs, stationarity=-np.nan))
    np.testing.assert_array_equal(
        read_run(tmp_path / "a.h5").agents["rounds"], [row(0).agents["rounds"]]
    )
