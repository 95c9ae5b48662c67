"""What rank 0 keeps of a run: one file, however often it is stopped and over whatever links."""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from synthetic_run import plan, row

from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import Event, read_final, read_run
from sundsbo_mpi.runfile.resuming import planned_after
from sundsbo_mpi.running import recording
from sundsbo_mpi.running.provenance import described
from sundsbo_mpi.running.recording import Recorder
from sundsbo_mpi.topology import Weights

W = {"x": torch.zeros(4), "y": torch.zeros(5), "theta": torch.zeros(5)}
COMPLETE = Weights(np.full((3, 3), 1 / 3), "complete")
LINE = Weights(np.array([[0.7, 0.3, 0], [0.3, 0.4, 0.3], [0, 0.3, 0.7]]), "line")


class Reporter:
    """Remembers what was said."""

    def __init__(self):
        self.notes, self.rows = [], []

    def note(self, *sentences):
        self.notes += sentences

    def row(self, found):
        self.rows.append(found.iteration)


def recorder(path, weights=COMPLETE, resumed_from=None, **run):
    """Return one for a run with 50 iterations and an evaluation every 10."""
    run = {"iterations": 50, "eval_every": 10, "save_final": True, **run}
    flags = {"run": run, "task": {"name": "quadratic"}, "output": {"file": str(path)}}
    resumption = SimpleNamespace(run_file=str(resumed_from), relinked=weights is not COMPLETE)
    prepared = SimpleNamespace(
        config=resolve(Request(flags=flags)),
        weights=weights,
        node_ids=("a", "b", "c"),
        about=SimpleNamespace(agents=3, numbers=range(3)),
        transport="messages",
        notes=("a note",),
        resumption=resumption if resumed_from else None,
    )
    facts = {**plan().agents_info, "oversubscribed": np.array(["", "", ""])}
    return Recorder(prepared, facts, "Some MPI 1.0", Reporter())


def record(kept, indices, of=None):
    for index in indices:
        found = row(index, of)
        if kept.path is None:
            kept.start(found, W)
        kept.row(found)


def test_a_run_that_is_stopped_and_resumed_is_one_file(tmp_path):
    path = tmp_path / "a.h5"
    first = recorder(path)
    assert (first.path, first.last) == (None, -1)
    record(first, range(4))
    first.row(row(9, iteration=33))
    assert first.last == 33
    first.close("interrupted")
    second = recorder(path, resumed_from=path, iterations=70)
    second.resume(20, "resumed after 20 iterations")
    assert (second.path, second.last) == (path, 20)
    record(second, range(3, 8))
    for v, s in W.items():
        second.final(v, np.full((3, len(s)), 2.0))
    second.close("finished")
    data = read_run(path)
    assert data.iteration.tolist() == list(range(0, 80, 10))
    assert data.planned == data.rows == 1 + planned_after(0, 70, 10)
    assert data.status == "finished"
    assert (data.attributes["restarts"], data.attributes["iterations"]) == (1, 70)
    assert data.config["run"]["iterations"] == 70
    (event,) = data.events
    assert (event.kind, event.sentence) == ("resumed", "resumed after 20 iterations")
    assert event.details["mpi_library"] == "Some MPI 1.0"
    assert event.details["hosts"] == ["node1", "node1", "node2"]
    assert "weights" not in event.details
    assert (read_final(path)["y"] == 2).all()


@pytest.mark.parametrize("other", [{"seed": 1}, {"dtype": "float32"}, {"eval_every": 5}])
def test_the_file_of_a_run_with_other_settings_is_refused(tmp_path, other):
    path = tmp_path / "a.h5"
    first = recorder(path, **other)
    record(first, range(3))
    first.close("interrupted")
    with pytest.raises(UsageError, match="the file of another run"):
        recorder(path, resumed_from=path).resume(0, "on")
    same = recorder(path, resumed_from=path, **other, iterations=99, max_walltime=5)
    same.resume(0, "on")
    same.close("failed")


def test_a_resumed_run_without_its_file_begins_a_new_one(tmp_path):
    kept = recorder(tmp_path / "b.h5", iterations=55)
    record(kept, [3, 4])
    kept.close("interrupted")
    data = read_run(tmp_path / "b.h5")
    assert (data.iteration.tolist(), data.planned) == ([30, 40], 4)
    on = recorder(None, resumed_from=tmp_path / "b.h5", iterations=55)
    on.resume(45, "on")
    assert on.last == 40
    on.close("failed")


def test_other_weights_are_noted_with_the_resume(tmp_path):
    path = tmp_path / "a.h5"
    first = recorder(path, weights=COMPLETE)
    record(first, range(3))
    first.close("interrupted")
    second = recorder(path, weights=LINE, resumed_from=path)
    second.resume(20, "on")
    record(second, [3], dataclasses.replace(plan(), edges=LINE.edges()))
    second.close("finished")
    data = read_run(path)
    assert data.events[0].details["topology_sha256"] == LINE.sha256
    weights = data.events[0].details["weights"]
    dense = np.zeros((3, 3))
    dense[weights["row"], weights["column"]] = weights["value"]
    np.testing.assert_array_equal(dense, LINE.matrix.toarray())
    assert data.attributes["topology_sha256"] == COMPLETE.sha256
    assert json.loads(data.attributes["notes"]) == ["a note"]
    assert data.edge_bytes.shape == (4, 6)


PAIR = Weights(np.full((2, 2), 0.5), "pair")


@pytest.mark.parametrize("recorder_died", [False, True])
def test_agents_that_leave_are_noted_and_the_others_go_on(tmp_path, recorder_died):
    path = tmp_path / "a.h5"
    first = recorder(path)
    record(first, range(3))
    left = Event(25, "agents left", "agent 0 left")
    if recorder_died:
        first.close("failed")
        first = recorder(path)
    first.regroup(left, [1, 2], PAIR, path)
    assert first.last == 20
    two = plan(agents=2, edges=PAIR.edges())
    record(first, [3], two)
    first.close("finished")
    data = read_run(path)
    (event,) = data.events
    assert (event.iteration, event.details["agents"]) == (25, [1, 2])
    assert event.details["rho"] == described(PAIR)["rho"]
    assert data.attributes.get("restarts", 0) == 0
    assert data.agents["messages"][3].tolist() == [
        row(2).agents["messages"][0],
        *row(3, two).agents["messages"],
    ]


def test_events_are_written_at_once_or_with_the_next_row(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    kept = recorder(path)
    kept.event(0, "odd", "before the file")
    record(kept, [0])
    assert [event.sentence for event in read_run(path).events] == ["before the file"]
    for k in range(1, 4):
        kept.event(k, "skipped", f"iteration {k}")
    assert len(read_run(path).events) == 1  # a copy for each would take the time of the run
    record(kept, [1])
    assert len(read_run(path).events) == 4
    monkeypatch.setattr(recording, "EVENT_SECONDS", 0.0)
    kept.event(11, "skipped", "iteration 11")
    assert len(read_run(path).events) == 5
    monkeypatch.setattr(recording, "EVENT_SECONDS", 100.0)
    monkeypatch.setattr(recording, "EVENTS", 7)
    for k in range(12, 20):
        kept.event(k, "skipped", f"iteration {k}")
    kept.close("finished")
    assert [event.iteration for event in read_run(path).events] == [0, 1, 2, 3, 11, 12, 13]


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_costs_an_event_but_not_the_run(tmp_path, monkeypatch):
    kept = recorder(tmp_path / "a.h5")
    record(kept, [0])
    with monkeypatch.context() as disk:
        disk.setattr("sundsbo_mpi.runfile.disk.os.pwrite", full)
        kept.event(0, "odd", "said")
    assert ["1 events are not in the run file" in note for note in kept._reporter.notes] == [True]
    record(kept, [1])
    kept.close("finished")
    assert (read_run(tmp_path / "a.h5").rows, read_run(tmp_path / "a.h5").events) == (2, ())


def test_a_full_disk_is_said_and_the_file_closed(tmp_path, monkeypatch):
    kept = recorder(tmp_path / "a.h5")
    record(kept, [0])
    monkeypatch.setattr("sundsbo_mpi.runfile.disk.os.pwrite", full)
    for trouble in (
        lambda: record(kept, [1]),
        lambda: kept.final("x", np.zeros((3, 4))),
        kept.sync,
    ):
        with pytest.raises(UsageError, match="cannot be written any more: No space left"):
            trouble()
    kept.close("failed")
    assert "No space left" in kept._reporter.notes[-1]
    monkeypatch.undo()
    assert read_run(tmp_path / "a.h5").rows == 1
    recorder(None, resumed_from=tmp_path / "a.h5").resume(0, "on")  # nobody has the lock


def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch):
    kept = recorder(tmp_path / "a.h5")
    record(kept, [0])
    kept.close("finished")
    assert kept._reporter.notes == []

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    for kept in (recorder(tmp_path / "b.h5"), recorder(None, resumed_from=tmp_path / "a.h5")):
        if kept._prepared.resumption:
            kept.resume(0, "on")
        else:
            record(kept, [0])
        kept.close("finished")
        (note,) = kept._reporter.notes
        assert "knows no locks" in note
