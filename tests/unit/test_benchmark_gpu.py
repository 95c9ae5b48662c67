"""The benchmark that compares a GPU with the CPU, as far as it needs no GPU."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from test_benchmarks import FOLDER, benchmark

from sundsbo_mpi.bench.record import Key, Series
from sundsbo_mpi.comm.transports import TRANSPORTS


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return benchmark("gpu")


def run(**changes):
    """A run file of two agents with three evaluations."""
    found = {
        "iteration": np.array([0, 10, 30]),
        "elapsed_s": np.array([0.0, 5.0, 7.0]),
        "task": {"upper_loss": np.array([8.0, 2.0, 1.0]), "test_accuracy": np.array([10, 80, 90])},
        "consensus": {"x": np.array([0.0, 0.5, 1e-17])},
        "agents": {n: np.ones((3, 2)) for n in ("bytes_payload", "messages", "rounds")},
        "agents_info": {"device": np.array(["cpu", "cpu"])},
        "attributes": {"transport": "point to point", "mpi_library": "an MPI"},
    }
    return SimpleNamespace(**found | changes)


def test_equal_runs_are_not_apart(gpu):
    assert gpu.apart(run(), run()) == 0
    assert gpu.same_bytes(run(), run())
    assert gpu.points(run(), run()) == 0


@pytest.mark.parametrize("series", ["task", "consensus"])
def test_any_changed_value_counts_in_terms_of_the_largest(gpu, series):
    known = getattr(run(), series)
    for name, curve in known.items():
        for row in range(len(curve)):
            changed = curve.astype(float)
            changed[row] += 1e-9 * np.abs(curve).max()
            other = run(**{series: known | {name: changed}})
            assert gpu.apart(other, run()) == pytest.approx(1e-9, rel=1e-4)
            assert gpu.apart(other, run()) > gpu.TOLERANCE


@pytest.mark.parametrize(
    "changes",
    [
        {"iteration": np.array([0, 10, 20])},
        {"iteration": np.array([0, 10])},
        {"task": {"upper_loss": np.ones(3)}},
        {"consensus": {"x": np.array([0.0, np.nan, 0.0])}},
    ],
)
def test_runs_that_cannot_be_compared_are_infinitely_apart(gpu, changes):
    assert gpu.apart(run(**changes), run()) == np.inf
    assert gpu.apart(run(), run(**changes)) == np.inf


def test_what_diverged_proves_nothing(gpu):
    diverged = run(consensus={"x": np.array([0.0, np.nan, np.inf])})
    assert gpu.apart(diverged, diverged) == np.inf
    away = {"x": np.zeros(3)}
    assert gpu.apart(run(), run(consensus=away)) == np.inf
    assert gpu.apart(run(consensus=away), run(consensus=away)) == 0


@pytest.mark.parametrize("name", ["bytes_payload", "messages", "rounds"])
def test_one_byte_more_is_noticed(gpu, name):
    more = run()
    more.agents[name][1, 1] += 1
    assert not gpu.same_bytes(more, run())


def test_the_last_accuracies_are_compared(gpu):
    other = run(task=run().task | {"test_accuracy": np.array([10, 80, 89.5])})
    assert gpu.points(other, run()) == gpu.points(run(), other) == 0.5


def test_seconds_leave_out_the_warm_up(gpu):
    assert gpu.seconds(run()) == [0.1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_last_bit_of_one_number_is_counted(gpu, dtype):
    known = {"x": np.ones((2, 3), dtype), "y": np.zeros((2, 1), dtype)}
    other = {name: v.copy() for name, v in known.items()}
    assert gpu.unequal(other, known) == 0
    other["x"][1, 2] = np.nextafter(other["x"][1, 2], dtype(2))
    other["y"][0, 0] = -0.0
    assert gpu.unequal(other, known) == 2
    assert gpu.unequal({"x": known["x"]}, known) == gpu.unequal({}, known) == 8


def test_transports_without_a_time_are_named(gpu):
    def timed(seconds, *names, buffers="device"):
        value = np.array([[seconds]])
        return {
            Key("round", name, buffers, "all"): Series(value, value, value[0]) for name in names
        }

    first, *others = TRANSPORTS
    bench = SimpleNamespace(series=timed(1.0, *others) | timed(1.0, first, buffers="host"))
    assert gpu.unmeasured(bench, "device") == [first]
    assert gpu.unmeasured(SimpleNamespace(series=timed(0.0, first)), "device") == list(TRANSPORTS)


class Programs:
    """What starts nothing: direct messages end as told."""

    device = "cuda"

    def __init__(self, code, said):
        self._ended = code, said

    def new(self):
        return Path("new")

    def words(self, device, output):
        return ()

    def start(self, *words):
        return self._ended


REFUSAL = "\0note\nsundsbo-mpi: run.gpu_direct is set, but it arrives spoilt.\nmpirun: 2\n"


@pytest.mark.parametrize(
    ("code", "said", "passed"),
    [
        (2, REFUSAL, True),
        (2, "sundsbo-mpi: no such topology.\n", False),
        (1, REFUSAL, False),
        (139, "signal 11\n", False),
        (139, "", False),
        (0, "", True),
    ],
)
def test_direct_messages_are_refused_in_a_sentence_or_right(gpu, monkeypatch, code, said, passed):
    monkeypatch.setattr(gpu, "read_final", lambda _path: {"x": np.ones((2, 3))})
    found = gpu.direct(Programs(code, said), {"auto": Path("auto")})
    assert found.passed is passed
    assert not (code and f"exit {code}" not in found.found)


def test_direct_messages_that_differ_are_not_good(gpu, monkeypatch):
    finals = {"new": np.ones((2, 3)), "auto": np.zeros((2, 3))}
    monkeypatch.setattr(gpu, "read_final", lambda path: {"x": finals[path.name]})
    assert gpu.direct(Programs(0, ""), {"auto": Path("auto")}) == (
        False,
        "6 numbers differ from staged messages",
    )


def test_a_run_on_another_device_than_asked_is_no_comparison(gpu, monkeypatch, tmp_path):
    programs = gpu.Programs(2, "cuda", 30, tmp_path)
    monkeypatch.setattr(gpu.Programs, "words", lambda *_: ())
    monkeypatch.setattr(gpu.Programs, "start", lambda *_: (0, ""))
    monkeypatch.setattr("started.read_run", lambda _path: run())
    assert programs.run("cpu") == tmp_path / "0.h5"
    with pytest.raises(gpu.FailedError, match="computed on cpu in place of cuda"):
        programs.run("cuda")


def test_without_a_gpu_it_refuses(gpu, monkeypatch):
    monkeypatch.setattr(gpu, "visible", lambda: False)
    result = CliRunner().invoke(gpu.main, [])
    assert result.exit_code == 2
    assert "no GPU is visible" in result.output
    assert "{" not in result.output


@pytest.mark.parametrize("passed", [True, False])
def test_a_failed_check_fails_the_whole(gpu, monkeypatch, passed):
    def checks(programs, times):
        times["s per iteration"] = [1.0, 3.0]
        return {"one": lambda: gpu.Check(True, "equal"), "two": second}

    def second():
        if not passed:
            raise gpu.FailedError("exit 1")
        return gpu.Check(True, "equal")

    monkeypatch.setattr(gpu, "all_checks", checks)
    result = CliRunner().invoke(gpu.main, ["--device", "cpu"])
    assert result.exit_code == (not passed)
    found = json.loads(next(x for x in result.stdout.splitlines() if x.startswith("{")))
    assert found["device"].startswith("cpu, compared with itself")
    assert found["checks"]["two"]["passed"] is passed
    assert found["figures"]["s per iteration"]["median"] == 2.0
