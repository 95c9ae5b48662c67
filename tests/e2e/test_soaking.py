"""The soak's programs in short, and that they see what they are there to see."""

import hashlib
import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from programs import BIN, finish

SOAK = Path(__file__).parents[1] / "soak"
sys.path.append(str(SOAK))

import endurance  # noqa: E402
import killing  # noqa: E402
from comparing import differences, newest_row, rows_of  # noqa: E402


def test_nothing_grows_in_a_thousand_iterations(tmp_path):
    words = [SOAK / "endurance.py", "--iterations", 1000, "--only", "gt-auto"]
    result = finish([BIN / "python", *words], tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    (line,) = map(json.loads, result.stdout.splitlines())
    assert line["failed"] == []
    assert line["growth"].keys() == endurance.ALLOWED.keys()


ROWS = 101


def write_run(path, **changes):
    """Write what the programs look at of a run file; ``changes`` replace series by their name."""
    flat = {f"task/{name}": np.full(ROWS, 5.0) for name in endurance.ALLOWED}
    flat |= {"invariant/x": np.full(ROWS, 1e-16), "consensus/x": np.full(ROWS, 1e-3)}
    flat |= {"iteration": np.arange(ROWS) * 10, "rows": ROWS, "elapsed_s": np.random.rand(ROWS)}
    with h5py.File(path, "w") as run:
        for name, values in (flat | changes).items():
            run[f"metrics/{name}"] = values
        run["final/x"] = np.arange(6.0).reshape(3, 2)
        run.attrs["status"] = "finished"
    return path


def test_what_does_not_grow_is_fine(tmp_path):
    assert endurance.judge(write_run(tmp_path / "run.h5"), 1000)[1] == []


GROWTHS = {
    "task/resident_bytes": 5.0 + 1e5 * np.arange(ROWS),
    "task/descriptors": 5.0 + (np.arange(ROWS) > 80),
    "task/objects": 5.0 + 20 * np.arange(ROWS),
    "invariant/x": np.geomspace(1e-16, 1e-8, ROWS),
    "consensus/x": np.geomspace(1e-9, 1.0, ROWS),
}


@pytest.mark.parametrize("series", GROWTHS)
def test_what_grows_is_seen(tmp_path, series):
    run = write_run(tmp_path / "run.h5", **{series: GROWTHS[series]})
    (wrong,) = endurance.judge(run, 1000)[1]
    assert series.partition("/")[2] in wrong or "invariant" in wrong or "consensus" in wrong


def test_a_run_that_ends_early_is_seen(tmp_path):
    assert (
        "it ended after 1000 iterations" in endurance.judge(write_run(tmp_path / "a.h5"), 1001)[1]
    )


def test_the_same_run_differs_only_in_its_clock(tmp_path):
    runs = [write_run(tmp_path / f"{name}.h5") for name in "ab"]
    assert differences(*runs, exact=True) == []
    assert newest_row(runs[0]) == 1000


@pytest.mark.parametrize("place", ["final/x", "metrics/task/objects", "metrics/iteration"])
def test_one_bit_in_a_resumed_run_is_seen(tmp_path, place):
    runs = [write_run(tmp_path / f"{name}.h5") for name in "ab"]
    with h5py.File(runs[1], "r+") as run:
        values = run[place][:]
        values.reshape(-1)[3] = np.nextafter(values.reshape(-1)[3], 1e9).astype(values.dtype) + (
            values.dtype.kind == "i"
        )
        run[place][...] = values
    (said,) = differences(*runs, exact=True)
    assert place.removeprefix("metrics/").replace("/", " ").split()[-1] in said


def test_a_row_that_is_missing_or_there_twice_is_seen(tmp_path):
    whole = write_run(tmp_path / "a.h5")
    fewer = write_run(tmp_path / "b.h5", rows=ROWS - 1)
    assert all(
        f"{ROWS - 1} in place of {ROWS}" in said for said in differences(whole, fewer, exact=True)
    )
    twice = np.arange(ROWS) * 10
    twice[50] = twice[49]
    assert differences(whole, write_run(tmp_path / "c.h5", iteration=twice), exact=True)


def test_no_run_file_yet_is_no_fault_and_rubbish_is(tmp_path):
    whole = write_run(tmp_path / "a.h5")
    assert rows_of(tmp_path / "none.h5", whole) == []
    (tmp_path / "b.h5").write_bytes(whole.read_bytes()[:3000])
    assert len(rows_of(tmp_path / "b.h5", whole)) == 1
    assert newest_row(tmp_path / "b.h5") == -1


def write_checkpoint(folder, iteration):
    made = folder / f"iteration-{iteration:09d}"
    made.mkdir()
    (made / "agent-00000.h5").write_bytes(b"agent 0")
    digests = [hashlib.sha256(b"agent 0").hexdigest()]
    (made / "manifest.json").write_text(json.dumps({"iteration": iteration, "digests": digests}))
    return made


def test_a_checkpoint_that_is_not_whole_is_seen(tmp_path):
    assert killing.newest_checkpoint(tmp_path / "none") == (-1, [])
    write_checkpoint(tmp_path, 20)
    (tmp_path / ".iteration-000000030.0a1b2c3d.part").mkdir()
    assert killing.newest_checkpoint(tmp_path) == (20, [])
    assert killing.newest_name(tmp_path) == 20
    (write_checkpoint(tmp_path, 30) / "agent-00000.h5").write_bytes(b"agent")
    newest, (wrong,) = killing.newest_checkpoint(tmp_path)
    assert (newest, "agent 0 is not what was written" in wrong) == (30, True)
    (write_checkpoint(tmp_path, 40) / "manifest.json").unlink()
    assert any(
        "iteration-000000040 is not whole" in said
        for said in killing.newest_checkpoint(tmp_path)[1]
    )
