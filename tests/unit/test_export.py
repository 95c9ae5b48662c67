"""``sundsbo-mpi export``: every number of a run file, for other tools."""

from __future__ import annotations

import contextlib
import csv
import json
import struct
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from synthetic_run import AGENTS, EDGES, plan, row

from sundsbo_mpi.cli.export import command
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.exporting import tables
from sundsbo_mpi.runfile import Event, RunFile, read_run


@pytest.fixture
def run(tmp_path):
    counts = {"train_label_counts": np.array([[7, 3], [5, 5], [0, 10]])}
    planned = plan(agents_info=plan().agents_info | counts)
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", planned)) as file:
        for index in range(3):
            file.append(row(index, planned))
        file.note([Event(20, "resumed", 'it went on, "so" to speak', {"n": 1})])
        file.finish("finished")
    return read_run(tmp_path / "a.h5")


def export(*arguments):
    done = CliRunner().invoke(command, [str(word) for word in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_holds_every_number(tmp_path, run):
    assert export(run.path, "--csv", tmp_path / "out") == f"wrote {tmp_path / 'out'}\n"
    folder = tmp_path / "out" / "a"
    evaluations = read_csv(folder / "evaluations.csv")
    for name, curve in {**run.curves, "wall_s": run.wall_s, "iteration": run.iteration}.items():
        found = [float(line[name] or "nan") for line in evaluations]
        np.testing.assert_array_equal(found, curve)
    costs = read_csv(folder / "agent_costs.csv")
    assert len(costs) == 3 * AGENTS
    for line in costs:
        at = (run.iteration.tolist().index(int(line["iteration"])), int(line["agent"]))
        assert all(float(line[name]) == counted[at] for name, counted in run.agents.items())
    sent = read_csv(folder / "edge_bytes.csv")
    assert len(sent) == 3 * len(EDGES)
    for place, line in enumerate(sent):
        at, edge = divmod(place, len(EDGES))
        assert [int(line[end]) for end in ("sender", "receiver")] == EDGES[edge].tolist()
        assert int(line["iteration"]) == run.iteration[at]
        assert int(line["bytes"]) == run.edge_bytes[at, edge]
    agents = read_csv(folder / "agents.csv")
    assert [line["host"] for line in agents] == ["node1", "node1", "node2"]
    assert [line["train_label_1"] for line in agents] == ["3", "5", "10"]
    (event,) = read_csv(folder / "events.csv")
    assert event["sentence"] == 'it went on, "so" to speak'
    assert json.loads(event["details"]) == {"n": 1}
    told = json.loads((folder / "run.json").read_text())
    assert told["config"] == run.config
    assert told["attributes"]["seed"] == 7


def test_weights_of_a_period(tmp_path):
    stack = np.vstack([np.eye(AGENTS), np.roll(np.eye(AGENTS), 1, axis=1)])
    RunFile.create(tmp_path / "a.h5", plan(weights=stack)).close()
    table = tables(read_run(tmp_path / "a.h5"))["weights"]
    rebuilt = np.zeros((2, AGENTS, AGENTS))
    rebuilt[table["matrix"], table["row"], table["column"]] = table["weight"]
    np.testing.assert_array_equal(rebuilt.reshape(-1, AGENTS), stack)


def test_parquet_holds_the_same(tmp_path, run):
    parquet = pytest.importorskip("pyarrow.parquet")
    export(run.path, "--parquet", tmp_path / "out")
    for name, table in tables(run).items():
        found = parquet.read_table(tmp_path / "out" / "a" / f"{name}.parquet").to_pydict()
        assert list(found) == list(table)
        for column, values in table.items():
            np.testing.assert_array_equal(found[column], list(values))
    assert json.loads((tmp_path / "out" / "a" / "run.json").read_text())["config"] == run.config


def events_of(folder):
    """Return the scalars of an event file as {(tag, step): (value, time)}."""
    proto = pytest.importorskip("tensorboardX.proto.event_pb2")
    (path,) = folder.glob("events.out.tfevents.*")
    content, found, place = path.read_bytes(), {}, 0
    while place < len(content):
        (length,) = struct.unpack_from("<Q", content, place)
        event = proto.Event.FromString(content[place + 12 : place + 12 + length])
        place += 12 + length + 4
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                found[value.tag, event.step] = (value.simple_value, event.wall_time)
    return found


def test_tensorboard_holds_the_curves(tmp_path, run):
    pytest.importorskip("tensorboardX")
    export(run.path, "--tensorboard", tmp_path / "out")
    found = events_of(tmp_path / "out" / "a")
    began = found["costs/elapsed_s", 0][1] - run.wall_s[0]
    assert began == pytest.approx(1795821300.0, rel=0, abs=1e-3)  # 2026-11-27T23:15:00+00:00
    for place, k in enumerate(run.iteration.tolist()):
        assert found["task/test_loss", k][0] == pytest.approx(run.task["test_loss"][place])
        value, time = found["consensus/theta", k]
        assert value == pytest.approx(run.consensus["theta"][place])
        assert time == pytest.approx(began + run.wall_s[place], rel=0, abs=1e-3)
        mean = run.agents["bytes_payload"][place].mean()
        assert found["costs/bytes_payload", k][0] == pytest.approx(mean)
    assert ("invariant/x", 0) not in found  # NaN, which is not known
    with pytest.raises(UsageError, match="is there already: pass --overwrite"):
        export(run.path, "--tensorboard", tmp_path / "out")
    export(run.path, "--tensorboard", tmp_path / "out", "--overwrite")
    assert events_of(tmp_path / "out" / "a").keys() == found.keys()


def test_what_is_refused_leaves_nothing_behind(tmp_path, run):
    out = tmp_path / "out"
    with pytest.raises(UsageError, match=r"nothing to write: say where, with --csv DIR"):
        export(run.path)
    (tmp_path / "more").mkdir()
    again = tmp_path / "more" / "a.h5"
    again.write_bytes(run.path.read_bytes())
    with pytest.raises(UsageError, match="two of the runs are called 'a'"):
        export(run.path, again, "--csv", out)
    kept = tmp_path / "kept" / "a"
    kept.mkdir(parents=True)
    (kept / "agents.csv").write_text("precious")
    with pytest.raises(UsageError, match=r"'.*kept/a' is there already: pass --overwrite"):
        export(run.path, "--csv", out, "--parquet", tmp_path / "kept")
    assert (kept / "agents.csv").read_text() == "precious"
    assert not out.exists()
    (tmp_path / "file").write_text("precious")
    with pytest.raises(UsageError, match=r"cannot write to '.*/file/a': Not a directory"):
        export(run.path, "--csv", tmp_path / "file")


@pytest.mark.parametrize(
    ("kind", "module"), [("parquet", "pyarrow"), ("tensorboard", "tensorboardX")]
)
def test_without_a_library_the_user_is_told_how_to_get_it(tmp_path, run, monkeypatch, kind, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        UsageError, match=rf"needs {module}, .* pip install 'sundsbo-mpi\[export\]'"
    ):
        export(run.path, f"--{kind}", tmp_path / "out")


def test_a_run_without_rows(tmp_path):
    RunFile.create(tmp_path / "a.h5", plan()).close()
    export(tmp_path / "a.h5", "--csv", tmp_path / "out")
    assert read_csv(tmp_path / "out" / "a" / "evaluations.csv") == []
    assert len(read_csv(tmp_path / "out" / "a" / "agents.csv")) == AGENTS
