"""The run file: what is written comes back, and nothing is lost or overwritten by accident."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.sparse import csr_array, vstack
from synthetic_run import AGENTS, CONFIG, EDGES, plan, row

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import (
    OutputExistsError,
    RunData,
    RunFile,
    RunPlan,
    default_path,
    read_final,
    read_run,
)
from sundsbo_mpi.runfile.schema import values

NOW = datetime(2026, 11, 27, 23, 15, 0, tzinfo=UTC)


def write(path, rows, planned=None, status="finished") -> RunData:
    planned = planned or plan()
    with contextlib.closing(RunFile.create(path, planned)) as run:
        for index in range(rows):
            run.append(row(index, planned))
        if status:
            run.finish(status)
    return read_run(path)


def series_of(data: RunData) -> dict[str, np.ndarray]:
    """The inverse of ``schema.values``, for all rows at once."""
    scalars = ("iteration", "elapsed_s", "wall_s")
    measured = ("stationarity", "stationarity_residual", "lipschitz")
    table = {name: getattr(data, name) for name in scalars + measured}
    table["edges/bytes"] = data.edge_bytes
    for group in ("task", "consensus", "invariant", "agents"):
        table |= {f"{group}/{name}": found for name, found in getattr(data, group).items()}
    return table


def assert_holds(data: RunData, rows: int, planned: RunPlan | None = None) -> None:
    assert data.rows == rows
    found = series_of(data)
    expected = [values(row(index, planned)) for index in range(rows)]
    assert all(found.keys() == names.keys() for names in expected)
    for name, series in found.items():
        assert len(series) == rows, name
        for index in range(rows):
            np.testing.assert_array_equal(series[index], expected[index][name], err_msg=name)


def test_every_value_comes_back(tmp_path):
    data = write(tmp_path / "a.h5", rows=6)
    assert_holds(data, 6)
    assert data.status == "finished"
    assert datetime.fromisoformat(data.attributes["ended"]).tzinfo is not None
    assert data.config == CONFIG
    assert data.attributes["format"] == "sundsbo-mpi/1"
    assert data.attributes["seed"] == 7
    assert data.attributes["rho"] == 0.25
    assert (data.planned, data.agent_count) == (6, AGENTS)
    np.testing.assert_array_equal(data.edges, EDGES)
    np.testing.assert_array_equal(data.weights.toarray(), plan().weights)
    for name, facts in plan().agents_info.items():
        np.testing.assert_array_equal(data.agents_info[name], facts)
    assert list(data.task) == list(plan().task_metrics)
    assert list(data.consensus) == ["x", "y", "theta"]


def test_the_layout_is_the_documented_one(tmp_path):
    planned = plan(save_final=True)
    write(tmp_path / "a.h5", rows=2, planned=planned)
    with h5py.File(tmp_path / "a.h5", "r") as file:
        found = {}

        def visit(name, node):
            if isinstance(node, h5py.Dataset):
                found[name] = node.shape
                assert node.chunks is None, name

        file.visititems(visit)
        assert file["topology/weights"].shape == (AGENTS, AGENTS)
        assert file["metrics/rows"][()] == 2
        assert np.isnan(file["metrics/task/test_accuracy"][2:]).all()
        assert (file["metrics/iteration"][2:] == -1).all()
        assert json.loads(file.attrs["config"]) == CONFIG
    per_agent = ["bytes_payload", "bytes_network", "bytes_shared", "messages", "rounds"]
    per_agent += ["bytes_control", "rounds_control"]
    phases = ("gradient", "pack", "post", "wait", "mix", "evaluation")
    per_agent += [f"seconds_{phase}" for phase in phases]
    scalars = ["iteration", "elapsed_s", "wall_s", "stationarity"]
    scalars += ["stationarity_residual", "lipschitz"]
    scalars += [f"task/{name}" for name in planned.task_metrics]
    scalars += [f"{kind}/{v}" for kind in ("consensus", "invariant") for v in planned.variables]
    facts = ("host", "device", "threads", "train_samples", "validation_samples")
    assert found == (
        {f"metrics/{name}": (6,) for name in scalars}
        | {f"metrics/agents/{name}": (6, AGENTS) for name in per_agent}
        | {f"agents/{name}": (AGENTS,) for name in facts}
        | {f"final/{name}": (AGENTS, d) for name, d in planned.variables.items()}
        | {"metrics/rows": (), "metrics/crc32": (6,), "metrics/edges/bytes": (6, len(EDGES))}
        | {"events": (0,)}
        | {"topology/weights": (AGENTS, AGENTS), "topology/edges": (len(EDGES), 2)}
    )


def test_a_file_of_an_earlier_release_is_read(tmp_path):
    path = tmp_path / "a.h5"
    later = {"bytes_control", "rounds_control", "seconds_post"}
    everything = write(path, rows=2).agents
    with h5py.File(path, "r+") as file:
        del file["events"], file["metrics/crc32"]
        for name in later:
            del file[f"metrics/agents/{name}"]
    assert set(read_run(path).agents) == set(everything) - later
    with h5py.File(path, "r+") as file:
        del file["metrics/agents/rounds"]
    with pytest.raises(UsageError, match="damaged"):
        read_run(path)


@pytest.mark.parametrize("status", ["finished", "failed", "interrupted"])
def test_a_run_ends_with_a_status(tmp_path, status):
    assert write(tmp_path / "a.h5", rows=1, status=status).status == status


def test_an_unknown_status_is_refused(tmp_path):
    with pytest.raises(ValueError, match="asleep"):
        write(tmp_path / "a.h5", rows=1, status="asleep")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_final_iterates_come_back(tmp_path, dtype):
    planned = plan(save_final=True, dtype=dtype)
    random = np.random.default_rng(0)
    final = {v: random.normal(size=(AGENTS, d)).astype(dtype) for v, d in plan().variables.items()}
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", planned)) as run:
        for variable, stacked in final.items():
            for agent, vector in enumerate(stacked):
                run.write_final(variable, agent, vector)
        with pytest.raises(ValueError, match="shape"):
            run.write_final("x", 0, np.zeros(1))
    found = read_final(tmp_path / "a.h5")
    assert list(found) == list(final)
    for variable, stacked in final.items():
        assert found[variable].dtype == dtype
        np.testing.assert_array_equal(found[variable], stacked)
    assert read_run(tmp_path / "a.h5").final == {"x": (3, 4), "y": (3, 5), "theta": (3, 5)}


def test_final_iterates_were_not_asked_for(tmp_path):
    write(tmp_path / "a.h5", rows=1)
    with pytest.raises(UsageError, match="--save-final"):
        read_final(tmp_path / "a.h5")


def test_one_agent_without_edges(tmp_path):
    facts = {name: facts[:1] for name, facts in plan().agents_info.items()}
    alone = plan(
        agents=1, edges=np.empty((0, 2), int), weights=np.eye(1), agents_info=facts, task_metrics=()
    )
    data = write(tmp_path / "a.h5", rows=2, planned=alone)
    assert data.edge_bytes.shape == (2, 0)
    assert data.edges.shape == (0, 2)
    assert data.task == {}


@pytest.mark.parametrize("matrices", [0, 1, 3])
def test_the_matrices_of_a_period_stand_one_below_the_other(tmp_path, matrices):
    stack = [np.roll(np.eye(AGENTS), by, axis=0) for by in range(matrices)]
    weights = vstack([csr_array((0, AGENTS)), *map(csr_array, stack)])
    data = write(tmp_path / "a.h5", rows=1, planned=plan(weights=weights))
    assert data.weights.shape == (matrices * AGENTS, AGENTS)
    for t, W in enumerate(stack):
        of_t = data.weights.toarray()[t * AGENTS : (t + 1) * AGENTS]
        np.testing.assert_array_equal(of_t, W)


@pytest.mark.parametrize("agents", [2000, 2001])
def test_weights_of_many_agents_are_stored_sparse(tmp_path, agents):
    shift = csr_array((np.ones(agents), (np.arange(agents), np.roll(np.arange(agents), 1))))
    weights = csr_array(0.5 * shift + 0.5 * shift.T)
    facts = {name: np.resize(facts, agents) for name, facts in plan().agents_info.items()}
    many = plan(agents=agents, rows=1, weights=weights, agents_info=facts)
    data = write(tmp_path / "a.h5", rows=1, planned=many)
    assert abs(data.weights - weights).max() == 0
    with h5py.File(tmp_path / "a.h5", "r") as file:
        assert isinstance(file["topology/weights"], h5py.Dataset) == (agents == 2000)


def test_a_long_config_is_kept(tmp_path):
    long = json.dumps({"task": {"words": "ä" * 70_000}}, ensure_ascii=False)
    assert len(long) > 2**16
    data = write(tmp_path / "a.h5", rows=1, planned=plan(attributes={"config": long}))
    assert data.config == json.loads(long)


def test_a_run_is_readable_while_its_writer_holds_the_lock(tmp_path):
    # In another process: within one, HDF5 knows that the file is open.
    show = "import sys; from sundsbo_mpi.cli.show import command; command(sys.argv[1:])"
    plainly = "import sys, h5py; h5py.File(sys.argv[1], 'r')"
    path = str(tmp_path / "a.h5")
    with contextlib.closing(RunFile.create(path, plan())) as run:
        for index in range(4):
            run.append(row(index))
        done = subprocess.run(
            [sys.executable, "-c", show, path, "--json"], capture_output=True, text=True, check=True
        )
        locked = subprocess.run(
            [sys.executable, "-c", plainly, path], capture_output=True, text=True
        )
        assert "BlockingIOError" in locked.stderr
    shown = json.loads(done.stdout)
    assert shown["status"] == "running"
    assert shown["rows"] == 4
    assert shown["metrics"]["task"]["test_loss"] == [row(i).task["test_loss"] for i in range(4)]


def test_names_must_stay(tmp_path):
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", plan())) as run:
        run.append(row(0))
        task = dict.fromkeys((*plan().task_metrics[1:], "new"), 1.0)
        with pytest.raises(UsageError, match=r"iteration 10 .*task/new, task/test_loss"):
            run.append(row(1, task=task))
        with pytest.raises(ValueError, match="edges/bytes has shape"):
            run.append(row(1, edge_bytes=np.zeros(2)))
    assert_holds(read_run(tmp_path / "a.h5"), 1)


def test_more_rows_than_planned(tmp_path):
    with pytest.raises(ValueError, match="planned with 6"):
        write(tmp_path / "a.h5", rows=7)
    assert_holds(read_run(tmp_path / "a.h5"), 6)


@pytest.mark.parametrize("name", ["", "a/b", ".hidden"])
def test_a_metric_that_cannot_be_stored_leaves_nothing(tmp_path, name):
    with pytest.raises(UsageError, match="rename it"):
        RunFile.create(tmp_path / "a.h5", plan(task_metrics=(name,)))
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unless_told(tmp_path):
    path = tmp_path / "a.h5"
    write(path, rows=2)
    with pytest.raises(OutputExistsError, match="--overwrite"):
        RunFile.create(path, plan())
    assert_holds(read_run(path), 2)
    with contextlib.closing(RunFile.create(path, plan(), overwrite=True)):
        pass
    assert read_run(path).rows == 0
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_taken_in_the_meantime_is_not_overwritten(tmp_path, monkeypatch):
    write(tmp_path / "a.h5", rows=2)
    monkeypatch.setattr("sundsbo_mpi.runfile.writer.check_writable", lambda path, overwrite: None)
    with pytest.raises(OutputExistsError, match="--overwrite"):
        RunFile.create(tmp_path / "a.h5", plan())
    assert_holds(read_run(tmp_path / "a.h5"), 2)
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


def test_a_run_that_begins_in_the_meantime_is_not_overwritten(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    monkeypatch.setattr("sundsbo_mpi.runfile.writer.check_writable", lambda path, overwrite: None)
    with contextlib.closing(RunFile.create(path, plan(), overwrite=True)) as run:
        with pytest.raises(UsageError, match="another run is writing"):
            RunFile.create(path, plan(), overwrite=True)
        run.append(row(0))
    assert_holds(read_run(path), 1)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_links(tmp_path, monkeypatch):
    def refuse(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert_holds(write(tmp_path / "a.h5", rows=2), 2)
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_another_run_is_writing(tmp_path, overwrite):
    path = tmp_path / "a.h5"
    code = (
        "import sys; from sundsbo_mpi.runfile import RunFile;"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r}); from synthetic_run import plan\n"
        "try: RunFile.create(sys.argv[1], plan(), overwrite=bool(int(sys.argv[2])))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    with contextlib.closing(RunFile.create(path, plan())) as run:
        run.append(row(0))
        arguments = [sys.executable, "-c", code, str(path), str(int(overwrite))]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"UsageError another run is writing '{path}'")
    assert_holds(read_run(path), 1)


def test_overwrite_spares_what_is_no_run_file(tmp_path):
    (tmp_path / "weights.npz").write_bytes(b"PK precious")
    with pytest.raises(UsageError, match="not a readable HDF5 file"):
        RunFile.create(tmp_path / "weights.npz", plan(), overwrite=True)
    assert (tmp_path / "weights.npz").read_bytes() == b"PK precious"
    with pytest.raises(UsageError, match="is a directory"):
        RunFile.create(tmp_path, plan(), overwrite=True)


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(UsageError, match=f"no directory '{tmp_path}/missing'"):
        RunFile.create(tmp_path / "missing" / "a.h5", plan())
    with pytest.raises(UsageError, match="File name too long; choose another --output"):
        RunFile.create(tmp_path / f"{'a' * 300}.h5", plan())


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="root can write elsewhere")
def test_a_directory_that_cannot_be_written():
    with pytest.raises(UsageError, match=r"cannot write '/proc/a\.h5'"):
        RunFile.create("/proc/a.h5", plan())


def test_a_file_that_does_not_fit(tmp_path):
    code = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "from sundsbo_mpi.runfile import RunFile;"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r}); from synthetic_run import plan\n"
        "try: RunFile.create(sys.argv[1], plan(rows=5000))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.h5")], capture_output=True, text=True
    )
    assert "UsageError cannot write" in done.stdout, done.stderr
    assert "File too large; choose another --output" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("task", "start"),
    [
        ("hyper-cleaning", "hyper-cleaning_sun-dsbo-gt_20261127-231500"),
        ("../my tasks/mine.py:Mine", "Mine_sun-dsbo-gt_20261127-231500"),
        ("package.module:Class", "Class_sun-dsbo-gt_20261127-231500"),
    ],
)
def test_default_names(tmp_path, task, start):
    for end in ("", "-2", "-3"):
        path = default_path(task, "sun-dsbo-gt", NOW, tmp_path)
        assert path == tmp_path / f"{start}{end}.h5"
        path.touch()


def test_runs_that_start_together_get_files_of_their_own(tmp_path):
    def start(number):
        made = RunFile.create_default("toy", "sun-dsbo-gt", plan(), tmp_path)
        made.append(row(number))
        made.close()
        return made.path

    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(start, range(6)))
    assert sorted(set(paths)) == sorted(tmp_path.iterdir())
    assert len(set(paths)) == 6
    for number, path in enumerate(paths):
        assert read_run(path).iteration.tolist() == [10 * number]


def test_default_file_in_a_missing_directory(tmp_path):
    with pytest.raises(UsageError, match="no directory"):
        RunFile.create_default("toy", "sun-dsbo-gt", plan(), tmp_path / "missing")


def test_files_that_are_no_run(tmp_path):
    with pytest.raises(UsageError, match="there is no run file"):
        read_run(tmp_path / "missing.h5")
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(UsageError, match="cannot be read as an HDF5 file"):
        read_run(tmp_path / "text.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.attrs["format"] = "sundsbo-mpi/9"
    with pytest.raises(UsageError, match="'sundsbo-mpi/9', expected 'sundsbo-mpi/1'"):
        read_run(tmp_path / "other.h5")


def test_curves_name_every_scalar_series(tmp_path):
    data = write(tmp_path / "a.h5", rows=3)
    scalars = {name.removeprefix("task/") for name in series_of(data)}
    apart = {"iteration", "elapsed_s", "wall_s", "edges/bytes"}
    assert data.curves.keys() == {n for n in scalars - apart if not n.startswith("agents/")}
    np.testing.assert_array_equal(data.curves["consensus/y"], data.consensus["y"])


def test_run_data_is_frozen(tmp_path):
    with pytest.raises(dataclasses.FrozenInstanceError):
        write(tmp_path / "a.h5", rows=1).status = "failed"


def _replace(name, value):
    def spoil(file):
        del file[name]
        if value is not None:
            file[name] = value

    return spoil


def _set(name, value):
    return lambda file: file.attrs.__setitem__(name, value)


SPOILT = {
    "config is not JSON": _set("config", "{"),
    "not a table": _set("config", "[1]"),
    "no known status": lambda file: file.attrs.__delitem__("status"),
    "known status, or": _set("status", "asleep"),
    "'seed' is neither": _set("seed", [1, 2]),
    "'rho' is 'x'": _set("rho", "x"),
    "surrogates": lambda file: file.attrs.create(
        "topology", b"ring \xff", dtype=h5py.string_dtype()
    ),
    "'metrics' doesn't exist": _replace("metrics", None),
    "'agents' doesn't exist": _replace("agents", None),
    "'device' doesn't exist": _replace("agents/device", None),
    "'host' holds int64": _replace("agents/host", np.arange(AGENTS)),
    "counts -1 eval": _replace("metrics/rows", -1),
    "counts 7 eval": _replace("metrics/rows", 7),
    "have no time": _replace("metrics/wall_s", np.full(6, np.nan)),
    "'lipschitz' holds float64": _replace("metrics/lipschitz", np.zeros(5)),
    "'agents/messages' holds": _replace("metrics/agents/messages", np.zeros(6)),
    "'y' doesn't exist": _replace("metrics/invariant/y", None),
    "weights are": _replace("topology/weights", np.eye(2)),
}


@pytest.mark.parametrize("words", SPOILT)
def test_a_damaged_file_gets_one_sentence(tmp_path, words):
    write(tmp_path / "a.h5", rows=6)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        SPOILT[words](file)
    with pytest.raises(UsageError, match=r"'.*a\.h5' is damaged: .*; take an undamaged") as caught:
        read_run(tmp_path / "a.h5")
    assert words in str(caught.value)


def test_a_format_that_is_no_text(tmp_path):
    write(tmp_path / "a.h5", rows=1)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file.attrs["format"] = np.arange(3)
    with pytest.raises(UsageError, match="no format that can be read"):
        read_run(tmp_path / "a.h5")
