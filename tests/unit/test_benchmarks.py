"""The benchmarks, which nothing else runs."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
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
    found = module.measure(module.SETTINGS["digits"], 0, tmp_path)
    assert (found["weight_gap@100"], found["weight_gap@500"]) == (2.0, 3.0)
    assert (found["largest_invariant"], found["wall_s"]) == (1e-7, 5.0)
    (words,) = started
    assert words[0].is_file()
    assert words[words.index("--topology") + 1].is_file()
