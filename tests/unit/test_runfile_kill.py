"""A run that is killed at any moment leaves a file that opens and shows its rows."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from synthetic_run import plan, row
from test_runfile import assert_holds

from sundsbo_mpi.runfile import RunFile, read_final, read_run

FLUSH = None


class LoggedFile(io.BytesIO):
    """A file in memory that remembers every change made to it and every flush, in order.

    A change is a position and the bytes written there, or None for a truncation.
    """

    def __init__(self):
        super().__init__()
        self.log = []

    def write(self, data):
        self.log.append((self.tell(), bytes(data)))
        return super().write(data)

    def truncate(self, size=None):
        self.log.append((self.tell() if size is None else size, None))
        return super().truncate(size)

    def flush(self):
        self.log.append(FLUSH)
        super().flush()


def states(log):
    """Yield the file's bytes after 0, 1, 2, ... changes or flushes."""
    content = bytearray()
    yield bytes(content)
    for change in log:
        if change is not FLUSH:
            position, data = change
            if data is None:
                del content[position:]
            content.extend(bytes(max(position - len(content), 0)))
            content[position : position + len(data or b"")] = data or b""
        yield bytes(content)


def backwards(log):
    """Turn around the order of the changes between one flush and the next."""
    turned, since = [], []
    for change in log:
        if change is FLUSH:
            turned += [*reversed(since), FLUSH]
            since = []
        else:
            since.append(change)
    return turned + since[::-1]


def logged_run(planned):
    """Return the log of a whole run and its length after the schema and after each row."""
    disk = LoggedFile()
    with h5py.File(disk, "w") as file:
        run = RunFile(file, planned)
        marks = [len(disk.log)]
        for index in range(planned.rows):
            run.append(row(index, planned))
            marks.append(len(disk.log))
        if planned.save_final:
            for variable, dimension in planned.variables.items():
                for agent in range(planned.agents):
                    run.write_final(variable, agent, np.full(dimension, agent))
        run.finish("finished")
    return disk.log, marks


# A long attribute and many metrics force HDF5 to spread the schema over several blocks.
WIDE = plan(
    rows=2,
    task_metrics=tuple(f"metric_{number:02}" for number in range(20)),
    attributes={"config": '{"words": "' + "x" * 70_000 + '"}'} | {f"a{i}": i for i in range(30)},
)


PLANS = {"plain": plan(), "final": plan(rows=2, save_final=True), "wide": WIDE}


@pytest.mark.parametrize("order", [list, backwards], ids=["in order", "backwards"])
@pytest.mark.parametrize("planned", PLANS.values(), ids=PLANS)
def test_every_prefix_of_the_writes_shows_the_rows_flushed_by_then(tmp_path, planned, order):
    log, marks = logged_run(planned)
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
    filled = RunFile.__init__

    def watched(self, file, planned):
        assert not path.exists()
        filled(self, file, planned)
        (hidden,) = tmp_path.iterdir()
        assert hidden.name.startswith(".a.h5.")
        assert not path.exists()

    monkeypatch.setattr(RunFile, "__init__", watched)
    RunFile.create(path, plan()).close()
    assert [found.name for found in tmp_path.iterdir()] == ["a.h5"]


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
