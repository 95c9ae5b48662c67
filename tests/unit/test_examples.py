"""The examples are sound tasks, learn what they say, and print what they promise."""

import json
import sys
from pathlib import Path

import bench
import h5py
import numpy as np
import pytest
import torch
from lockstep import Lockstep

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.config.settings import complete
from sundsbo_mpi.taskcheck import Verdict, check_task
from sundsbo_mpi.tasks import load_task

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
AGENTS = 3
CLASSES = {"reweighting": "Reweighting", "tuning": "Tuning", "fewshot": "FewShot"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Write what the examples write to try them; return the options of each."""
    folder = tmp_path_factory.mktemp("examples")
    example("reweighting").write(folder / "table.csv")
    example("fewshot").write(folder / "pictures", each=15)
    return {
        "reweighting": {"csv": str(folder / "table.csv")},
        "tuning": {"data": "wine"},
        "fewshot": {"folder": str(folder / "pictures"), "side": 8, "tasks": 4, "channels": 8},
    }


def name_of(name):
    return f"{EXAMPLES / name}.py:{CLASSES[name]}"


def example(name):
    return sys.modules[load_task(name_of(name)).__module__]


def run(name, given, iterations):
    """Run an example with its own defaults, in one process; return the run and the mean reports."""
    task_class = load_task(name_of(name))
    options = complete("task", task_class, given)
    whole = {"agents": AGENTS, "seed": 0, **options}
    shards = task_class.shards(**whole) if hasattr(task_class, "shards") else None
    own = [{"shard": shard} for shard in shards] if shards else [{}] * AGENTS
    tasks = [task_class(agent=agent, **whole, **own[agent]) for agent in range(AGENTS)]
    settings = {k: v for k, v in task_class.defaults["algorithm"].items() if k != "private"}
    algorithm = bench.build("sun-dsbo-gt", AGENTS, iterations, **settings)
    lockstep = Lockstep(algorithm, tasks, bench.ring(AGENTS, 0.5))
    before = reported(tasks, lockstep)
    return lockstep.run(iterations), before, reported(tasks, lockstep)


def reported(tasks, lockstep):
    x, y = (torch.from_numpy(lockstep.rows(v).mean(0)) for v in ("x", "y"))
    reports = [task.report(x, y) for task in tasks]
    merged = {}
    for name, value in reports[0].items():
        pairs = [r[name] if isinstance(value, tuple) else (r[name], 1) for r in reports]
        merged[name] = sum(s for s, _ in pairs) / sum(count for _, count in pairs)
    return merged


@pytest.mark.parametrize("name", CLASSES)
def test_it_is_a_sound_task(name, data):
    sets = [f"task.{key}={value}" for key, value in data[name].items()]
    findings = check_task(name_of(name), 2, sets)
    assert not [f for f in findings if f.verdict is Verdict.FAIL]


def test_reweighting_tells_right_labels_from_wrong_ones(data, tmp_path, capsys):
    options = data["reweighting"]
    lockstep, before, after = run("reweighting", options, 200)
    assert before["weight_right"] == before["weight_wrong"] == 0.5
    assert after["weight_right"] - after["weight_wrong"] > 0.3
    assert after["test_accuracy"] > before["test_accuracy"] + 30

    config = {"task": {**options, "label": "label", "trusted": "trusted"}, "run": {"seed": 0}}
    with h5py.File(tmp_path / "run.h5", "w") as kept:
        kept.attrs["config"] = json.dumps(config)
        kept["final/x"] = lockstep.rows("x")
    example("reweighting").least_trusted(options["csv"], tmp_path / "run.h5")
    lines = Path(options["csv"]).read_text().splitlines()
    named = [int(line.split()[1].rstrip(":")) for line in capsys.readouterr().out.splitlines()]
    wrong = [lines[number - 1].endswith(",0,1") for number in named]
    assert len(wrong) == 20
    assert sum(wrong) >= 16  # 30 % of all are


def test_reweighting_names_the_column_that_is_missing(data):
    with pytest.raises(UsageError, match=r"no rows with a column 'truth': set task\.label"):
        example("reweighting").read(data["reweighting"]["csv"], "truth", "trusted")


def test_tuning_finds_a_rate_at_which_the_average_does_well(data):
    lockstep, before, after = run("tuning", data["tuning"], 60)
    assert after["validation_loss"] < before["validation_loss"] / 2
    assert after["test_accuracy"] > 80
    x = torch.from_numpy(lockstep.rows("x").mean(0))
    trained = [
        example("tuning").train(*task._parts[0], 3, *x.exp(), task._steps).flatten()
        for task in lockstep.tasks
    ]
    mean, y = torch.stack(trained).mean(0), torch.from_numpy(lockstep.rows("y").mean(0))
    assert (y - mean).norm() < 0.2 * mean.norm()


def test_tuning_compares_with_a_grid_search(data, tmp_path, capsys):
    with h5py.File(tmp_path / "run.h5", "w") as kept:
        kept.attrs["config"] = json.dumps({"task": {**data["tuning"], "steps": 10}})
        kept["final/x"] = np.log([[0.5, 0.01]] * AGENTS)
    example("tuning").compare(tmp_path / "run.h5")
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("the run: rate 0.5, penalty 0.01: accuracy 9")
    assert second.startswith("grid search: {'penalty': ")


def test_fewshot_learns_features_that_serve_new_classes(data):
    _, before, after = run("fewshot", data["fewshot"], 30)
    assert before["query_loss"] == pytest.approx(np.log(3), rel=1e-5)  # three ways, heads at zero
    assert after["query_loss"] < 0.8 * before["query_loss"]
    assert after["new_accuracy"] > 60


def test_fewshot_says_what_is_too_little(data):
    options = {**data["fewshot"], "shots": 9}
    with pytest.raises(UsageError, match=r"10 classes with 5 images for each of 3 agents"):
        run("fewshot", options, 1)
