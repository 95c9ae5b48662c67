"""A run that its agents agree to stop, and the timeline of a run."""

import json

import h5py
import pytest

LONG = ("--iterations", 10**9, "--eval-every", 10**6)


@pytest.mark.parametrize("agents", [1, 3])
def test_time_that_is_over_stops_all_agents_together(mpirun, network, task, tmp_path, agents):
    flags = ("--topology", network(agents), "--task", task, *LONG, "--save-final")
    result = mpirun(agents, *flags, "--max-walltime", 3, "--output", "run.h5")
    assert result.returncode == 85, result.stderr
    assert "the time given by --max-walltime is over" in result.stderr
    assert "interrupted" in result.stdout
    with h5py.File(tmp_path / "run.h5") as run:
        assert run.attrs["status"] in ("interrupted", b"interrupted")
        assert int(run["metrics/rows"][()]) == 2
        first, done = run["metrics/iteration"][:2].tolist()
        assert (first, 0 < done < 10**9) == (0, True)
        control = run["metrics/agents/rounds_control"][1]
        assert control.tolist() == [done] * agents
        assert (run["metrics/agents/bytes_control"][1] == 8 * control).all()
        assert run["final/x"].shape == (agents, 1)


def test_the_timeline_of_a_run(mpirun, network, task, tmp_path):
    flags = ("--topology", network(3), "--task", task, "--iterations", 20, "--eval-every", 10)
    result = mpirun(3, *flags, "--output", "run.h5", "--trace", "trace.json")
    assert result.returncode == 0, result.stderr
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert [e["args"]["name"] for e in events if e["name"] == "thread_name"] == [
        "agent 0",
        "agent 1",
        "agent 2",
    ]
    for agent in range(3):
        own = [e for e in events if e["ph"] == "X" and e["tid"] == agent]
        count = {name: sum(e["name"] == name for e in own) for name in {e["name"] for e in own}}
        assert set(count) == {"gradient", "pack", "post", "wait", "mix", "evaluation"}
        assert count["pack"] == count["post"] == 40, "two rounds in each iteration"
        assert all(e["dur"] >= 0 for e in own)
        begins = [e["ts"] for e in own if e["name"] == "pack"]
        assert begins == sorted(begins)
    again = mpirun(3, *flags, "--output", "other.h5", "--trace", "trace.json")
    assert again.returncode == 2
    assert "the trace 'trace.json' exists" in again.stderr


def test_a_run_that_diverges_keeps_the_end_of_its_timeline(mpirun, network, task, tmp_path):
    flags = ("--topology", network(3), "--task", task, "--iterations", 20, "--eval-every", 20)
    trouble = [w for s in ('trouble="number"', "who=1", "at=7") for w in ("--set", f"task.{s}")]
    result = mpirun(3, *flags, *trouble, "--output", "run.h5", "--trace", "trace.json")
    assert result.returncode == 3, result.stderr
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    for agent in range(3):
        own = [e["name"] for e in events if e["ph"] == "X" and e["tid"] == agent]
        assert own.count("pack") >= 2 * 8, "two rounds in each iteration up to that of the trouble"


def test_messages_can_be_moved_by_a_thread(mpirun, network, task, tmp_path):
    flags = ("--topology", network(3), "--task", task, "--iterations", 30, "--save-final")
    early = [word for v in ("x", "y", "theta") for word in ("--set", f"algorithm.{v}=dgd")]
    for overlap in ("always", "never"):
        words = ("--overlap", overlap, "--output", f"{overlap}.h5")
        result = mpirun(3, *flags, *early, *words)
        assert result.returncode == 0, result.stderr
    with h5py.File(tmp_path / "always.h5") as a, h5py.File(tmp_path / "never.h5") as b:
        assert (a["final/x"][:] == b["final/x"][:]).all()
