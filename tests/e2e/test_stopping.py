"""A run that its agents agree to stop, a run that hangs, and the timeline of a run."""

import json
import signal
from pathlib import Path

import h5py
import pytest
from programs import BIN, assert_refused, finish, signalled

LONG = ("--iterations", 10**9, "--eval-every", 10**6)
SCRIPT = Path(__file__).parents[2] / "launch" / "local.sh"
FORWARDED = {
    "openmpi": (signal.SIGUSR1, signal.SIGUSR2),
    "mpich": (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT),
}
"""What each library's mpirun hands on to the ranks, and leaves it at that."""


@pytest.fixture
def local(mpirun, tmp_path):
    """Run the command as n ranks through the launch script."""

    def local(n, *arguments, **changes):
        return finish([SCRIPT, n, *arguments], tmp_path, BIN=str(BIN), **changes)

    return local


@pytest.fixture
def long(network, task):
    """Return what starts a run that does not end by itself."""

    def long(agents, output, trouble="", who=-1, at=-1):
        where = {"trouble": trouble, "who": who, "at": at}
        sets = [word for name in where for word in ("--set", f"task.{name}={where[name]}")]
        return ("--topology", network(agents), "--task", task, *LONG, *sets, "--output", output)

    return long


def assert_stopped(agents, result, output, reason):
    """The agents stopped together, for this reason, said once; return their last iteration."""
    assert result.returncode == 85, result.stderr
    assert result.stderr.count(reason) == 1, result.stderr
    assert "Traceback" not in result.stderr
    with h5py.File(output) as run:
        assert run.attrs["status"] in ("interrupted", b"interrupted")
        assert int(run["metrics/rows"][()]) == 2
        first, done = run["metrics/iteration"][:2].tolist()
        assert first == 0
        assert run["metrics/agents/rounds_control"][1].tolist() == [done] * agents
    return done


def test_a_signal_to_the_launcher_stops_all_agents_together(mpirun, long, library, tmp_path):
    for number in FORWARDED[library]:
        output = tmp_path / f"{number.name}.h5"
        result = mpirun(2, *long(2, output), meanwhile=signalled(number, output))
        assert_stopped(2, result, output, f"{number.name} was received")


def test_a_signal_to_one_agent_stops_all_of_them(mpirun, long, tmp_path):
    output = tmp_path / "run.h5"
    result = mpirun(3, *long(3, output, "signal", who=1, at=12))
    assert assert_stopped(3, result, output, "SIGUSR1 was received") > 12


def test_an_interrupt_of_the_launch_script_loses_nothing(local, long, tmp_path):
    output, saved = tmp_path / "run.h5", tmp_path / "saved"
    flags = (*long(2, output), "--checkpoint", saved)
    result = local(2, *flags, meanwhile=signalled(signal.SIGINT, output))
    done = assert_stopped(2, result, output, "SIGUSR1 was received")
    assert f"sundsbo-mpi resume {saved}" in result.stderr
    result = local(2, "resume", saved, "--iterations", done + 5)
    assert result.returncode == 0, result.stderr
    with h5py.File(output) as run:
        assert run.attrs["status"] in ("finished", b"finished")
        assert run["metrics/iteration"][: int(run["metrics/rows"][()])].tolist() == [0, done + 5]


def test_a_second_interrupt_ends_a_run_that_cannot_stop(local, long, tmp_path):
    output = tmp_path / "run.h5"
    meanwhile = signalled(signal.SIGINT, output, again=[signal.SIGINT])
    result = local(2, *long(2, output, "hang", who=1, at=1), meanwhile=meanwhile)
    assert result.returncode not in (0, 85)


def test_a_run_that_hangs_ends_and_every_agent_says_where(mpirun, long, tmp_path):
    flags = long(3, tmp_path / "run.h5", "hang", who=1, at=12)
    result = mpirun(3, *flags, "--comm-timeout", 3)
    assert result.returncode not in (0, 85)
    for rank in range(3):
        own = [line for line in result.stderr.splitlines() if line.startswith(f"[rank {rank}, ")]
        assert "no progress for 3 s in iteration 12" in own[0]
        assert any("in meet" in line for line in own) == (rank == 1), own


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
        assert (run["metrics/agents/bytes_control"][1] == 8 * (agents - 1) * control).all()
        assert run["final/x"].shape == (agents, 1)


def test_the_timeline_of_a_run(mpirun, network, task, tmp_path):
    flags = ("--topology", network(2), "--task", task, "--iterations", 20, "--eval-every", 10)
    result = mpirun(2, *flags, "--output", "run.h5", "--trace", "trace.json")
    assert result.returncode == 0, result.stderr
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert [e["args"]["name"] for e in events if e["name"] == "thread_name"] == [
        "agent 0",
        "agent 1",
    ]
    for agent in range(2):
        own = [e for e in events if e["ph"] == "X" and e["tid"] == agent]
        count = {name: sum(e["name"] == name for e in own) for name in {e["name"] for e in own}}
        assert set(count) == {"gradient", "pack", "post", "wait", "mix", "evaluation"}
        assert count["pack"] == count["post"] == 40, "two rounds in each iteration"
        spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in own)
        assert all(begin <= end for begin, end in spans)
        ends = [end for _, end in spans]
        assert all(later >= end - 0.01 for end, (later, _) in zip(ends, spans[1:], strict=False))
        begins = [e["ts"] for e in own if e["name"] == "pack"]
        assert begins == sorted(begins)
    again = mpirun(2, *flags, "--output", "other.h5", "--trace", "trace.json")
    assert_refused(again, "the trace 'trace.json' exists")


def test_a_run_that_diverges_keeps_the_end_of_its_timeline(mpirun, network, task, tmp_path):
    flags = ("--topology", network(2), "--task", task, "--iterations", 20, "--eval-every", 20)
    trouble = [w for s in ('trouble="number"', "who=1", "at=7") for w in ("--set", f"task.{s}")]
    result = mpirun(2, *flags, *trouble, "--output", "run.h5", "--trace", "trace.json")
    assert result.returncode == 3, result.stderr
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    for agent in range(2):
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
