"""A run that goes on: its file has every planned evaluation once, and nothing that was undone."""

from __future__ import annotations

import contextlib
import json
import os

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_run import AGENTS, CONFIG, EDGES, plan, resumption, row
from test_runfile import assert_holds, write

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import Event, RunFile, read_final, read_run
from sundsbo_mpi.runfile.resuming import planned_after


def resume(path, iteration, rows=(), status=None, agents=None, **changes):
    with contextlib.closing(RunFile.resume(path, resumption(iteration, **changes), agents)) as run:
        for found in rows:
            run.append(found)
        if status:
            run.finish(status)
    return read_run(path)


def planned_iterations(iterations, every):
    return sorted({*range(0, iterations + 1, every), iterations})


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=3),
    st.booleans(),
)
def test_any_chain_of_stops_and_resumes_has_each_planned_row_once(
    tmp_path_factory, every, chain, extra
):
    """Again and again ``more`` iterations are done, the ``lost`` last ones after a checkpoint."""
    path = tmp_path_factory.mktemp("chain") / "a.h5"
    iterations = 1 + sum(more for more, _ in chain)
    run, saved = RunFile.create(path, plan(rows=1 + planned_after(0, iterations, every))), 0
    run.append(row(0, iteration=0))
    for more, lost in [*chain, (iterations, 0)]:
        done = min(saved + more, iterations)
        for k in range(saved + 1, done + 1):
            if k % every == 0 or k == iterations:
                run.append(row(k, iteration=k))
        if extra and done < iterations and done % every and done > saved:
            run.append(row(done, iteration=done))
        run.finish("interrupted" if done < iterations else "finished")
        run.close()
        if done < iterations:
            saved = max(done - lost, saved)
            run = RunFile.resume(path, resumption(saved, iterations=iterations, eval_every=every))
            assert run.last == saved - saved % every
    data = read_run(path)
    expected = planned_iterations(iterations, every)
    assert data.iteration.tolist() == expected
    assert data.planned == data.rows
    loss = [row(k).task["test_loss"] for k in expected]
    assert data.task["test_loss"].tolist() == loss


def test_what_a_resumed_file_has(tmp_path):
    path = tmp_path / "a.h5"
    write(path, rows=6, planned=plan(save_final=True), status="interrupted")
    new = {"config": json.dumps({"other": {}}), "note": 3}
    data = resume(path, 20, iterations=80, attributes=new)
    assert_holds(data, 3)
    assert data.planned == 9
    assert (data.status, data.attributes["ended"]) == ("running", "")
    assert data.config == {"other": {}}
    assert {name: data.attributes[name] for name in ("iterations", "restarts", "note", "seed")} == {
        "iterations": 80,
        "restarts": 1,
        "note": 3,
        "seed": 7,
    }
    assert [(e.iteration, e.kind) for e in data.events] == [(20, "resumed")]
    np.testing.assert_array_equal(data.weights.toarray(), plan().weights)
    assert data.agents_info["host"].tolist() == ["node1", "node1", "node2"]
    assert data.final == {"x": (3, 4), "y": (3, 5), "theta": (3, 5)}
    again = resume(path, 20, iterations=30, rows=[row(3)], status="finished")
    assert (again.attributes["restarts"], again.rows, again.planned) == (2, 4, 4)
    assert [e.kind for e in again.events] == ["resumed", "resumed"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.h5"]


def test_final_iterates_are_kept_after_a_resume(tmp_path):
    path = tmp_path / "a.h5"
    write(path, rows=3, planned=plan(save_final=True), status=None)
    with contextlib.closing(RunFile.resume(path, resumption(20))) as run:
        for agent in range(AGENTS):
            run.write_final("y", agent, np.full(5, agent))
    np.testing.assert_array_equal(read_final(path)["y"].T, np.tile(np.arange(AGENTS), (5, 1)))


def test_the_row_at_the_end_is_kept_if_the_run_ends_there(tmp_path):
    path = tmp_path / "a.h5"
    with contextlib.closing(RunFile.create(path, plan())) as run:
        for index, k in enumerate((0, 10, 20, 25)):
            run.append(row(index, iteration=k))
    assert resume(path, 25, iterations=50).iteration.tolist() == [0, 10, 20]
    with contextlib.closing(RunFile.resume(path, resumption(20, iterations=25))) as run:
        run.append(row(3, iteration=25))
    data = resume(path, 25, iterations=25)
    assert (data.iteration.tolist(), data.planned) == ([0, 10, 20, 25], 4)


def test_a_file_that_was_begun_by_a_resumed_run(tmp_path):
    """It has no rows from before, and need not."""
    path = tmp_path / "a.h5"
    begun = plan(attributes=plan().attributes | {"begins": 30})
    with contextlib.closing(RunFile.create(path, begun)) as run:
        run.append(row(3))
        run.append(row(4))
    assert resume(path, 45).iteration.tolist() == [30, 40]
    data = resume(path, 15, rows=[row(2), row(3), row(4), row(5)])
    assert data.iteration.tolist() == [20, 30, 40, 50]
    assert resume(path, 33).iteration.tolist() == [20, 30]


REFUSED = {
    "another task": ({"identity": {"task": "toy"}}, "the file of another run, with task hyper-cl"),
    "other agents": ({"identity": {"agents": 4}}, "with agents 3 where the checkpoint has 4"),
    "no such mark": ({"identity": {"mark": "a"}}, "with mark None where"),
    "rows are missing": ({"iteration": 40}, "lacks the evaluation of iteration 30"),
    "rows between": ({"iteration": 29, "eval_every": 5}, "lacks the evaluation of iteration 5"),
}


@pytest.mark.parametrize(("changes", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_file_to_go_on_with(tmp_path, changes, words):
    path = tmp_path / "a.h5"
    write(path, rows=3, status="failed")
    before = path.read_bytes()
    with pytest.raises(UsageError, match=words) as refused:
        resume(path, changes.pop("iteration", 20), **changes)
    assert "--output NEW.h5" in str(refused.value)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5"]


def test_a_file_that_is_gone_or_none(tmp_path):
    with pytest.raises(UsageError, match="is gone: put it back, or begin a new file with --output"):
        resume(tmp_path / "a.h5", 20)
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(UsageError, match="cannot be read as an HDF5 file"):
        resume(tmp_path / "text.h5", 20)
    write(tmp_path / "a.h5", rows=3)
    (tmp_path / "cut.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:-100])
    with pytest.raises(UsageError, match="cannot be read as an HDF5 file"):
        resume(tmp_path / "cut.h5", 20)


def test_a_symbolic_link_goes_on_to_lead_to_the_file(tmp_path):
    (tmp_path / "scratch").mkdir()
    real, link = tmp_path / "scratch" / "real.h5", tmp_path / "a.h5"
    write(real, rows=3)
    link.symlink_to(real)
    resume(link, 10, rows=[row(2)])
    assert link.is_symlink()
    assert_holds(read_run(real), 3)
    with contextlib.closing(RunFile.create(link, plan(), overwrite=True)) as run:
        run.note([Event(0, "odd", "said")])
    assert link.is_symlink()
    assert len(read_run(real).events) == 1


def test_new_links_get_columns_and_old_ones_keep_what_they_sent(tmp_path):
    path = tmp_path / "a.h5"
    few = np.array([[0, 1], [1, 0]])
    planned = plan(edges=few)
    write(path, rows=3, planned=planned, status=None)
    new = np.array([[2, 1], [1, 0]])
    sent = np.array([40, 50])
    data = resume(path, 20, edges=new, rows=[row(3, edge_bytes=sent)])
    np.testing.assert_array_equal(data.edges, [[0, 1], [1, 0], [2, 1]])
    before = row(2, planned).edge_bytes
    np.testing.assert_array_equal(data.edge_bytes[2], [*before, 0])
    np.testing.assert_array_equal(data.edge_bytes[3], [before[0], 50, 40])


def test_the_same_links_in_another_order_keep_their_columns(tmp_path):
    path = tmp_path / "a.h5"
    write(path, rows=3, status=None)
    data = resume(path, 20, edges=EDGES[::-1], rows=[row(3, edge_bytes=row(3).edge_bytes[::-1])])
    np.testing.assert_array_equal(data.edges, EDGES)
    assert_holds(data, 4)


def test_agents_that_have_left_keep_what_they_spent(tmp_path):
    path = tmp_path / "a.h5"
    with contextlib.closing(RunFile.create(path, plan(save_final=True))) as run:
        run.append(row(0))
        run.append(row(1))
        here, edges = np.array([0, 2]), np.array([[0, 1], [1, 0]])
        run.note([Event(10, "agents left", "agent 1 left", {"agents": [0, 2]})], here, edges)
        two = plan(agents=2, edges=edges)
        run.append(row(2, two))
        with pytest.raises(ValueError, match="shape"):
            run.append(row(3))
        run.write_final("x", 1, np.ones(4))
    data = read_run(path)
    assert data.agent_count == AGENTS
    for name, value in data.agents.items():
        first, last = row(2, two).agents[name]
        np.testing.assert_array_equal(value[2], [first, row(1).agents[name][1], last])
    spent, sent = row(1).edge_bytes.tolist(), row(2, two).edge_bytes
    spent[1], spent[4] = sent  # (0, 2) and (2, 0)
    np.testing.assert_array_equal(data.edge_bytes[2], spent)
    np.testing.assert_array_equal(data.edges, EDGES)
    assert data.events[0].details == {"agents": [0, 2]}
    saved = read_final(path)["x"]
    assert np.isnan(saved[:2]).all()
    assert (saved[2] == 1).all()


def test_another_process_takes_over_the_file_of_a_dead_one(tmp_path):
    path = tmp_path / "a.h5"
    write(path, rows=3, status=None)
    here, edges = np.array([1, 2]), np.array([[0, 1], [1, 0]])
    two = plan(agents=2, edges=edges)
    data = resume(path, 40, again=False, agents=here, edges=edges, rows=[row(5, two)])
    assert data.iteration.tolist() == [0, 10, 20, 50]
    assert data.attributes["restarts"] == 0
    assert data.agents["rounds"][-1].tolist() == [
        row(2).agents["rounds"][0],
        *row(5, two).agents["rounds"],
    ]


@pytest.mark.parametrize(
    ("rows", "iteration", "iterations"), [(2, 20, 50), (5, 50, 50), (2, 20, 45)]
)
def test_an_evaluation_in_which_the_writer_died_has_room_to_be_done_again(
    tmp_path, rows, iteration, iterations
):
    """The agents that are left stand at an iteration whose row is not in the file."""
    path = tmp_path / "a.h5"
    write(path, rows=rows, status=None)
    todo = [k for k in planned_iterations(iterations, 10) if k >= iteration]
    again = [row(10, iteration=k) for k in todo]
    data = resume(path, iteration, again=False, iterations=iterations, rows=again)
    assert data.iteration.tolist() == planned_iterations(iterations, 10)
    assert data.planned == data.rows


def test_a_row_that_was_written_by_a_dead_writer_is_not_planned_twice(tmp_path):
    for rows, iteration, iterations in ((3, 20, 50), (3, 25, 50), (6, 50, 50)):
        path = tmp_path / f"{iteration}.h5"
        write(path, rows=rows, status=None)
        data = resume(path, iteration, again=False, iterations=iterations)
        assert (data.rows, data.planned) == (rows, 6)
    path = tmp_path / "odd.h5"
    with contextlib.closing(RunFile.create(path, plan(rows=4))) as run:
        for index, k in enumerate((0, 10, 20, 25)):
            run.append(row(index, iteration=k))
    data = resume(path, 25, again=False, iterations=25)
    assert (data.rows, data.planned) == (4, 4)


def test_a_file_begun_later_than_a_run_goes_back_to_has_its_evaluation(tmp_path):
    path = tmp_path / "a.h5"
    begun = plan(attributes=plan().attributes | {"begins": 30})
    with contextlib.closing(RunFile.create(path, begun)) as run:
        run.append(row(3))
    assert resume(path, 20).rows == 0  # and the run ends before it evaluates
    data = resume(path, 20, rows=[row(2), row(3), row(4), row(5)])
    assert data.planned == data.rows
    assert resume(path, 30).iteration.tolist() == [20, 30]


def test_an_event_that_is_not_readable_is_damage(tmp_path):
    for number, text in enumerate(("{", "[]", '{"iteration": 1}', '{"sentence": "\\ud800"}')):
        path = tmp_path / f"{number}.h5"
        write(path, rows=1)
        with h5py.File(path, "r+") as file:
            del file["events"]
            file["events"] = [text]
        with pytest.raises(UsageError, match="is damaged: an event"):
            read_run(path)


def test_events_come_back(tmp_path):
    path = tmp_path / "a.h5"
    said = Event(3, "skipped", 'Ünïcode and "quotes"', {"agent": 1, "weights": [0.1, 0.2]})
    with contextlib.closing(RunFile.create(path, plan())) as run:
        run.note([said, said])
        run.append(row(0))
        run.note([said])
    data = read_run(path)
    assert data.events == (said, said, said)
    assert_holds(data, 1)
    assert data.config == CONFIG


def test_two_runs_do_not_go_on_with_one_file(tmp_path):
    path = tmp_path / "a.h5"
    write(path, rows=3, status=None)
    with contextlib.closing(RunFile.resume(path, resumption(20))):
        with pytest.raises(UsageError, match=f"another run is writing '{path}'"):
            RunFile.resume(path, resumption(20))
        with pytest.raises(UsageError, match=f"another run is writing '{path}'"):
            RunFile.create(path, plan(), overwrite=True)
    resume(path, 20)


@pytest.mark.parametrize("late", [False, True])
def test_a_file_that_another_run_puts_there_meanwhile_is_not_replaced(tmp_path, monkeypatch, late):
    """Between the look at the name and the lock, another run may put a file of its own there."""
    path, other = tmp_path / "a.h5", tmp_path / "other.h5"
    write(path, rows=3, status=None)
    theirs = RunFile.create(other, plan())
    theirs.append(row(0))
    opening = os.open

    def overtaken(name, *flags, **others):
        descriptor = opening(name, *flags, **others)
        if str(name) == str(path) and other.exists():
            other.replace(path)
        return descriptor

    if late:
        monkeypatch.setattr(os, "open", overtaken)
    else:
        other.replace(path)
    with pytest.raises(UsageError, match="another run is writing"):
        RunFile.resume(path, resumption(20))
    theirs.append(row(1))
    theirs.close()
    assert_holds(read_run(path), 2)
