"""The timeline: what is noted, what is written, and that it can be read at any moment."""

import json
from functools import partial

import numpy as np
import pytest
from together import complaints, together

from sundsbo_mpi import tracing
from sundsbo_mpi.comm.alignment import Alignment
from sundsbo_mpi.errors import AgreedError, UsageError
from sundsbo_mpi.tracing import Notes, TraceFile, Tracer, check_trace

HOSTS, NAMES = (0, 1, 0), ("n[0]", 'n"1"', "n[0]")
ACCURACY = 3e-5


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def trace(path, work, agents=3, overwrite=False):
    """Let agents, the clock of the one on the second host ten seconds late, work with a tracer."""

    def live(tally):
        late = 10.0 * HOSTS[tally.agent]
        alignment = Alignment(late, ACCURACY * HOSTS[tally.agent])
        make = partial(TraceFile, path, overwrite, HOSTS[:agents], NAMES[:agents])
        return work(tally, Tracer(tally, lambda: alignment, make), late)

    return together(agents, live)


def work(tally, tracer, late):
    """Do a gradient and a mix, write, do another gradient, and finish."""
    now = tracing.time.perf_counter() - late
    tracer.notes("gradient", now + 1.0, now + 1.25)
    tracer.notes("mix", now + 2.0, now + 2.5)
    tracer.write()
    tracer.notes("gradient", now + 3.0 + tally.agent, now + 3.5 + tally.agent)
    return tracer.finish()


def test_every_phase_of_every_agent_is_an_event_on_one_clock(tmp_path):
    trace(tmp_path / "t.json", work)
    events = read(tmp_path / "t.json")
    phases = [event for event in events if event["ph"] == "X"]
    assert {(e["pid"], e["tid"]) for e in phases} == {(0, 0), (1, 1), (0, 2)}
    for agent in range(3):
        own = [e for e in phases if e["tid"] == agent]
        assert [e["name"] for e in own] == ["gradient", "mix", "gradient"]
        # In microseconds since the file was made, a moment before the work began.
        begins = np.array([1e6, 2e6, 3e6 + 1e6 * agent])
        assert np.abs([e["ts"] for e in own] - begins).max() < 2e5
        assert np.ptp([e["ts"] for e in own] - begins) < 0.01
        np.testing.assert_allclose([e["dur"] for e in own], [2.5e5, 5e5, 5e5], rtol=1e-6)


def test_hosts_and_agents_have_names(tmp_path):
    trace(tmp_path / "t.json", work)
    found = [e for e in read(tmp_path / "t.json") if e["ph"] == "M"]
    assert [(e["name"], e["pid"], e["tid"], e["args"]["name"]) for e in found] == [
        ("process_name", 0, 0, "host n[0]"),
        ("thread_name", 0, 0, "agent 0"),
        ("process_name", 1, 1, 'host n"1"'),
        ("thread_name", 1, 1, "agent 1"),
        ("thread_name", 0, 2, "agent 2"),
    ]


def test_the_file_can_be_read_at_any_moment(tmp_path):
    path, lengths = tmp_path / "t.json", []

    def look(tally, tracer, _late):
        for _ in range(3):
            if tally.is_root:
                lengths.append(len(read(path)))
            tracer.write()  # which may have nothing to write
            tracer.notes("pack", 0.0, 1.0)

    trace(path, look)
    assert lengths == [5, 5, 8]


def test_it_is_said_how_well_the_clocks_agree(tmp_path):
    said = trace(tmp_path / "t.json", work)
    assert said[0] == ["the trace's hosts agree on the time to 30 µs"]
    assert trace(tmp_path / "one.json", work, agents=1) == [[]]


def test_memory_and_file_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(tracing, "MOST_EVENTS", 6)  # two for each of the three agents
    said = trace(tmp_path / "t.json", work)
    assert sum(event["ph"] == "X" for event in read(tmp_path / "t.json")) == 6
    assert "full at 6 events: the last 1 of an agent are left out" in said[0][-1]
    notes = Notes(2)
    for _ in range(5):
        notes("mix", 0.0, 1.0)
    assert (len(notes.take()), len(notes.take()), notes.left_out) == (2, 0, 3)


def test_an_existing_file_is_kept_unless_told_otherwise(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("precious")
    make = partial(TraceFile, path, False, (0,), ("n",))
    said = complaints(2, lambda tally: Tracer(tally, lambda: Alignment(0, 0), make), AgreedError)
    assert "exists: choose another --trace or replace it by --overwrite" in said[0]
    assert said[0] == said[1]
    assert path.read_text() == "precious"
    trace(path, work, overwrite=True)
    assert len(read(path)) == 14


def test_a_file_that_cannot_be_written_ends_all_agents_with_a_sentence(tmp_path):
    path = tmp_path / "nowhere" / "t.json"
    make = partial(TraceFile, path, False, (0,), ("n",))
    said = complaints(2, lambda tally: Tracer(tally, lambda: Alignment(0, 0), make), AgreedError)
    assert "No such file or directory; choose another --trace" in said[0]
    vanished = tmp_path / "t.json"

    def lose(tally):
        make = partial(TraceFile, vanished, False, (0,), ("n",))
        tracer = Tracer(tally, lambda: Alignment(0, 0), make)
        vanished.unlink(missing_ok=True)
        tracer.write()

    assert "cannot write the trace" in complaints(1, lose, AgreedError)[0]


def test_a_path_is_checked_before_anything_is_built(tmp_path):
    path = tmp_path / "t.json"
    check_trace(None, overwrite=False)
    check_trace(path, overwrite=False)
    assert list(tmp_path.iterdir()) == []
    path.write_text("precious")
    check_trace(path, overwrite=True)
    assert path.read_text() == "precious"
    with pytest.raises(UsageError, match="exists: choose another --trace"):
        check_trace(path, overwrite=False)
    with pytest.raises(UsageError, match=r"no directory .* choose another --trace"):
        check_trace(tmp_path / "nowhere" / "t.json", overwrite=True)
    with pytest.raises(UsageError, match="is a directory"):
        check_trace(tmp_path, overwrite=True)


@pytest.mark.parametrize("phase", ["gradient", "pack", "post", "wait", "mix", "evaluation"])
def test_all_phases_have_their_own_name(tmp_path, phase):
    trace(tmp_path / "t.json", lambda _t, tracer, _l: tracer.notes(phase, 0, 1) or tracer.finish())
    assert {e["name"] for e in read(tmp_path / "t.json") if e["ph"] == "X"} == {phase}
