"""The benchmarks, which nothing else runs."""

import importlib.util
import json
import mmap
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def benchmark(name):
    """Execute a benchmark's file as a module."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_agents_that_exchange_nothing_drift_apart():
    words = ["--dataset", "digits", "--iterations", "1", "--iterations", "3"]
    result = CliRunner().invoke(benchmark("no_exchange").main, words, catch_exceptions=False)
    first, last = map(json.loads, result.output.splitlines())
    assert (first["iteration"], last["iteration"]) == (1, 3)
    assert 0 < first["consensus_y"] < last["consensus_y"]
    for found in (first, last):
        assert 0 < found["test_accuracy"] < 100
        assert 0 < found["test_accuracy_local"] < 100


def test_a_direction_is_measured_beside_its_matrix_products(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = benchmark("gradient")
    monkeypatch.setattr(module.torch, "set_num_threads", lambda number: None)
    monkeypatch.setattr(module, "prepare_heap", lambda: None)
    result = CliRunner().invoke(module.main, ["--repeats", "2", "--times", "1"])
    found = json.loads(result.output.splitlines()[0])["figures"]
    for clock in ("CPU", "wall"):
        ratio = found[f"direction / {module.PRODUCTS}, {clock}"]
        assert 0 < ratio["min"] <= ratio["median"] <= ratio["max"]
        assert ratio["repeats"] == 2
        # A pass over two vectors and all calls take a good part of what the products do.
        assert found[f"{module.NEEDED} / {module.PRODUCTS}, {clock}"]["max"] > 1


def test_hyper_cleaning_finds_what_it_starts(monkeypatch, tmp_path):
    module = benchmark("hyper_cleaning")
    started = []
    monkeypatch.setattr(module.subprocess, "run", lambda words, **_: started.append(words))

    run = SimpleNamespace(
        iteration=np.array([0, 100, 500]),
        task=dict.fromkeys(module.METRICS, np.array([1.0, 2.0, 3.0])),
        consensus={"y": np.array([0.0, 0.1, 0.2])},
        invariant={"x": np.array([0.0, 1e-7, 1e-8])},
        wall_s=np.array([0.0, 1.0, 5.0]),
    )
    monkeypatch.setattr(module, "read_run", lambda _path: run)
    found = module.measure(module.RUNS["digits"], 0, tmp_path)
    assert (found["weight_gap@100"], found["weight_gap@500"]) == (2.0, 3.0)
    assert (found["largest_invariant"], found["wall_s"]) == (1e-7, 5.0)
    (words,) = started
    assert words[0].is_file()
    assert words[words.index("--topology") + 1].is_file()


def test_topologies_of_two_sizes_are_measured():
    words = ["--agents", "30", "--agents", "130", "--graph", "torus"]
    result = CliRunner().invoke(benchmark("topology_scale").main, words, catch_exceptions=False)
    cases = [json.loads(line) for line in result.stdout.splitlines()]
    assert [case["agents"] for case in cases] == [30, 130]
    for case in cases:
        assert 0 < case["rho"] < 1
        assert 8 * case["links"] < case["sent_bytes"] < 48 * case["links"]
        assert case["crossing_placed"] <= case["crossing"] <= case["links"]
    assert {"cut", "links"} <= set(result.stderr.split())


def test_compressed_hyper_cleaning_is_set_beside_whole_messages():
    words = ["--method", "sun-dsbo-se", "--form", "private x, quantiser 3 bits"]
    words += ["--iterations", "2", "--every", "1", "--set", "task.hidden=5"]
    result = CliRunner().invoke(benchmark("compression").main, words, catch_exceptions=False)
    whole, small = map(json.loads, result.output.splitlines()[:2])
    assert (whole["iterations_to_goal"], whole["of_the_bytes"]) == (2, 1.0)
    assert small["goal"] == whole["goal"] == whole["test_accuracy"]
    assert 0 < small["bytes_per_iteration"] < whole["bytes_per_iteration"] / 10
    assert small["consensus_y"] > 0


def figures(module, words):
    result = CliRunner().invoke(module.main, words, catch_exceptions=False)
    return json.loads(result.output.splitlines()[0])["figures"]


class Told:
    """A job whose turns take what they are told to."""

    def __init__(self, *seconds):
        self.turns, self.closed = iter(seconds), False

    def measure(self, name):
        seconds = next(self.turns)
        return seconds, seconds

    def close(self):
        self.closed = True


def test_iterations_are_compared_within_their_turn(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = benchmark("iteration")
    jobs = []

    def started(name, iterations):
        turns = (0.02, 0.02) if name == "se shared" else (0.04, 0.01)
        jobs.append(Told(*turns))
        return jobs[-1]

    monkeypatch.setattr(module, "started", started)
    monkeypatch.setattr("jobs.SCATTERED", mmap.PAGESIZE)
    words = ["--starts", "1", "--repeats", "1", "--group", "SE"]
    found = figures(module, words)
    assert found["SE / one process, one thread"] == {
        "median": 1.25, "min": 0.5, "max": 2.0, "repeats": 2
    }  # fmt: skip
    assert found["SE by hand / gradients and steps in ten processes"]["median"] == 1.0
    assert found["se shared, ms"]["median"] == 20.0
    assert all(job.closed for job in jobs)


def test_the_job_does_what_iterations_are_compared_of(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = benchmark("iteration")
    used = {name for ratios in module.GROUPS.values() for pair in ratios.values() for name in pair}
    assert used == set(benchmark("in_mpi").VARIANTS) | set(module.SIMULATED)


def test_the_agents_are_simulated_in_one_process(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = benchmark("in_one_process")
    monkeypatch.setattr(module.torch, "set_num_threads", lambda number: None)
    monkeypatch.setattr(module, "prepare_heap", lambda: None)
    monkeypatch.setattr(module, "TEN", 2)
    seconds, processor = module.measured(module.simulation(threads=1), 1)
    assert seconds > 0 < processor


WORKER = """
import sys
from pathlib import Path
from jobs import serve

serve(Path(sys.argv[sys.argv.index("--socket") + 1]), lambda name: (float(name), 2.0))
sys.exit(int(sys.argv[1]))
"""
"""A process of a job: says that an iteration took as many seconds as the variant's name tells."""


@pytest.mark.parametrize("status", [0, 3])
def test_a_job_measures_whenever_it_is_told_to(monkeypatch, status):
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    job = benchmark("jobs").Job([sys.executable, "-c", WORKER, status])
    assert [job.measure(name) for name in ("3", "0.5")] == [(3.0, 2.0), (0.5, 2.0)]
    with pytest.raises(SystemExit, match="3") if status else nullcontext():
        job.close()


def test_a_job_that_never_starts_is_not_waited_for(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    with pytest.raises(SystemExit, match="a job failed, with exit status 5"):
        benchmark("jobs").Job([sys.executable, "-c", "raise SystemExit(5)"])


def test_sizes_of_jobs_are_compared_within_their_repetition(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    module = benchmark("scaling")
    costs, started = {10: [2.0, 4.0], 64: [3.0, 4.0]}, []

    def in_mpi(agents, iterations, variants):
        started.append(agents)
        return Told(*(cost for cost in costs[agents] for _ in variants))

    monkeypatch.setattr(module, "in_mpi", in_mpi)
    monkeypatch.setattr("jobs.SCATTERED", mmap.PAGESIZE)
    found = figures(module, ["--starts", "2", "--repeats", "2"])
    assert started == [10, 64, 64, 10]
    assert found["se shared, n = 64 / n = 10"] == {
        "median": 1.25, "min": 1.0, "max": 1.5, "repeats": 4
    }  # fmt: skip


def test_memory_is_not_looked_at_over_fewer_iterations_than_it_has_tenths(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    result = CliRunner().invoke(benchmark("memory").main, ["--iterations", "9"])
    assert result.exit_code == 2
    assert "9 is not in the range x>=10" in result.output
