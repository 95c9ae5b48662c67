"""``sundsbo-mpi show``: the summary and the JSON of a run in any state."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from printed import line
from rich.console import Console
from synthetic_run import AGENTS, CONFIG, EDGES, plan, resumption, row

from sundsbo_mpi.cli.show import command
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.metric_names import direction
from sundsbo_mpi.runfile import Event, RunFile, read_run
from sundsbo_mpi.summary import render_summary


@pytest.fixture
def path(tmp_path):
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", plan())) as run:
        for index in range(6):
            run.append(row(index))
        run.finish("finished")
    return str(tmp_path / "a.h5")


def show(*arguments) -> str:
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_what_ran_and_how_it_ended(path):
    text = show(path)
    assert line(text, "status").startswith("status finished 20")
    assert line(text, "task") == "task hyper-cleaning, digits"
    assert line(text, "algorithm") == "algorithm sun-dsbo-gt, minibatch"
    assert line(text, "agents") == "agents 3 on 2 hosts, cpu, cuda:0"
    assert line(text, "topology") == "topology ring (n=3) [odd] name, rho 0.25"
    assert line(text, "iterations") == "iterations 50 of 50 (6 of 6 evaluations)"
    assert line(text, "seed") == "seed 7"
    assert line(text, "time") == "time 5.5 s of training, 5.75 s in all"
    assert line(text, "MPI") == "MPI Open MPI v5.0.11"


def test_first_best_and_last_metrics(path):
    text = show(path)
    assert line(text, "test_loss") == "test_loss 80 80 0 85"  # less is better
    assert line(text, "test_accuracy ") == "test_accuracy 80.14 85.14 50 85.14"
    assert line(text, "stationarity ") == "stationarity 0.1 0.01667 50 0.01667"
    assert line(text, "lipschitz") == "lipschitz 2 – – 7"
    assert line(text, "theta") == "theta 0.3333 0.3333 0.125 7e-16"


def test_how_far_the_agents_were_apart_at_first_at_most_and_at_last(tmp_path):
    defects = {0: np.nan, 1: 2e-16, 2: 1e-16}
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", plan())) as run:
        for index, apart in enumerate((0.25, 4.0, 0.5)):
            of_each = {"consensus": apart, "invariant": defects[index]}
            series = {name: dict.fromkeys(plan().variables, v) for name, v in of_each.items()}
            run.append(row(index, **series))
    text = show(str(tmp_path / "a.h5"))
    columns = "consensus, first consensus, largest consensus, last invariant, largest"
    assert line(text, "variable") == f"variable {columns}"
    assert line(text, "x ") == "x 0.25 4 0.5 2e-16"


def test_what_the_agents_have_spent(path):
    text = show(path)
    assert line(text, "bytes payload") == "bytes payload 5 kB 5.001 kB 5.002 kB 15 kB"
    assert line(text, "bytes network") == "bytes network 5.1 kB 5.101 kB 5.102 kB 15.3 kB"
    assert line(text, "bytes shared") == "bytes shared 5.2 kB 5.201 kB 5.202 kB 15.6 kB"
    assert line(text, "rounds  ") == "rounds 5400 5401 5402 –"
    assert line(text, "seconds wait") == "seconds wait 6000 6001 6002 18003"


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        (
            "Open MPI v5.0.11, package: Open MPI root@host, ident: 5",
            "Open MPI v5.0.11",
        ),
        ("MPICH Version:      5.0.2\nMPICH Release date: today\n", "MPICH Version: 5.0.2"),
    ],
)
def test_the_mpi_library_in_a_few_words(tmp_path, version, shown):
    RunFile.create(tmp_path / "a.h5", plan(attributes={"mpi_library": version})).close()
    assert line(show(str(tmp_path / "a.h5")), "MPI") == f"MPI {shown}"


@pytest.mark.parametrize("rows", [0, 2])
def test_a_run_that_did_not_finish(tmp_path, rows):
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", plan())) as run:
        for index in range(rows):
            run.append(row(index))
    text = show(str(tmp_path / "a.h5"))
    assert "running, or killed (last written" in line(text, "status")
    assert f"({rows} of 6 evaluations)" in line(text, "iterations")
    assert ("no evaluation has been written yet" in text) == (rows == 0)
    assert json.loads(show(str(tmp_path / "a.h5"), "--json"))["rows"] == rows


def test_what_was_not_measured_is_not_listed(tmp_path):
    missing = dict.fromkeys(("stationarity", "stationarity_residual", "lipschitz"), np.nan)
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", plan())) as run:
        run.append(row(0, **missing))
    text = show(str(tmp_path / "a.h5"))
    assert "stationarity" not in text
    assert "nan" not in text
    assert line(text, "x") == "x 1 1 1 –"


def test_a_narrow_file_needs_no_attributes(tmp_path):
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", plan(attributes={}))) as run:
        run.append(row(0))
    text = show(str(tmp_path / "a.h5"))
    assert line(text, "task") == "task –"
    assert line(text, "topology") == "topology 6 directed edges"
    assert line(text, "iterations") == "iterations 0 (1 of 6 evaluations)"


def test_the_summary_fits_into_eighty_columns(path):
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(render_summary(read_run(path)))
    assert "…" not in console.export_text()
    console.file.close()


def test_events_are_told_the_last_ones(path):
    assert "\nevents" not in show(path)
    with contextlib.closing(RunFile.resume(path, resumption(30))) as run:
        run.note([Event(k, "skipped", f"[{k}] was skipped") for k in range(31, 45)])
    lines = [said.rstrip() for said in show(path).splitlines()]
    (start,) = [number for number, said in enumerate(lines) if said.startswith("events")]
    assert lines[start].split() == ["events", "5", "earlier", "ones"]
    assert lines[start + 1].endswith(": [35] was skipped")
    assert lines[start + 10].endswith(": [44] was skipped")
    assert line(show(path), "status").startswith("status running, or killed")
    told = json.loads(show(path, "--json"))["events"]
    assert [(e["iteration"], e["kind"]) for e in told[:2]] == [(30, "resumed"), (31, "skipped")]


def test_how_many_go_on_where_some_were_lost(tmp_path):
    config = json.dumps({"output": {"checkpoint": "c"}, "run": {"on_failure": "continue"}})
    attributes = plan().attributes | {"config": config}
    with contextlib.closing(RunFile.create(tmp_path / "r.h5", plan(attributes=attributes))) as run:
        run.append(row(0))
        run.note([Event(3, "agents lost", "agent 1 was lost", {"lost": [1]})])
        run.finish("interrupted")
    text = show(str(tmp_path / "r.h5"))
    assert line(text, "to go on") == "to go on mpirun -n 2 --with-ft ulfm sundsbo-mpi resume c"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("interrupted", "to go on mpirun -n 3 sundsbo-mpi resume 'my run'"),
        ("failed", "to go on mpirun -n 3 sundsbo-mpi resume 'my run'"),
        (None, "to go on if it was killed: mpirun -n 3 sundsbo-mpi resume 'my run'"),
        ("finished", None),
    ],
)
def test_how_to_go_on_with_a_run_that_has_checkpoints(tmp_path, status, words):
    config = json.dumps({"output": {"checkpoint": "my run"}})
    for name, text in (("with", config), ("odd", '{"output": 3}')):
        attributes = plan().attributes | {"config": text}
        with contextlib.closing(
            RunFile.create(tmp_path / f"{name}.h5", plan(attributes=attributes))
        ) as run:
            run.append(row(0))
            if status:
                run.finish(status)
    text = show(str(tmp_path / "with.h5"))
    assert "to go on" not in show(str(tmp_path / "odd.h5"))
    if words:
        assert line(text, "to go on") == words
    else:
        assert "to go on" not in text


def test_a_damaged_file_is_shown_as_far_as_it_is_whole(path):
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 8)
    text = show(path)
    assert line(text, "damaged").startswith("damaged 6 of 6 planned evaluations are whole, from")
    assert line(text, "status").startswith("status finished 20")
    found = json.loads(show(path, "--json"))
    assert found["damage"].startswith("6 of 6")
    assert found["metrics"]["iteration"] == [0, 10, 20, 30, 40, 50]
    with open(path, "r+b") as file:
        file.truncate(5000)
    with pytest.raises(UsageError, match="no evaluation in it is whole"):
        show(path)


def test_json_holds_everything(path):
    found = json.loads(show(path, "--json"))
    assert (found["damage"], found["events"]) == ("", [])
    assert found["status"] == "finished"
    assert found["config"] == CONFIG
    assert found["attributes"]["seed"] == 7
    assert (found["rows"], found["planned_rows"]) == (6, 6)
    assert found["agents"]["host"] == ["node1", "node1", "node2"]
    assert found["topology"]["edges"] == EDGES.tolist()
    assert found["topology"]["weights"]["value"] == [1 / 3] * AGENTS**2
    metrics = found["metrics"]
    expected = row(3)
    assert metrics["iteration"] == [0, 10, 20, 30, 40, 50]
    for group in ("task", "consensus", "invariant"):
        for name, value in getattr(expected, group).items():
            assert metrics[group][name][3] == value
    for name, values in expected.agents.items():
        assert metrics["agents"][name][3] == values.tolist()
    assert metrics["edges"]["bytes"][3] == expected.edge_bytes.tolist()
    assert metrics["stationarity"][3] == expected.stationarity
    assert metrics["invariant"]["x"][0] is None  # NaN is not JSON


def test_infinity_is_not_json_either(tmp_path):
    with contextlib.closing(RunFile.create(tmp_path / "a.h5", plan())) as run:
        run.append(row(0, stationarity=np.inf))
    text = show(str(tmp_path / "a.h5"), "--json")
    assert "Infinity" not in text
    assert json.loads(text)["metrics"]["stationarity"] == [None]


def test_json_tells_the_shapes_of_the_final_iterates(tmp_path):
    RunFile.create(tmp_path / "a.h5", plan(save_final=True)).close()
    found = json.loads(show(str(tmp_path / "a.h5"), "--json"))
    assert found["final"] == {"x": [3, 4], "y": [3, 5], "theta": [3, 5]}


def test_a_missing_file_is_a_usage_error():
    with pytest.raises(UsageError, match=r"there is no run file 'missing\.h5'"):
        CliRunner().invoke(command, ["missing.h5"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("test_accuracy", 1),
        ("auc", 1),
        ("weight_gap", 1),
        ("test_loss", -1),
        ("error_bilevel_x", -1),
        ("consensus/y", -1),
        ("weight_clean", 0),
    ],
)
def test_which_way_is_better(metric, expected):
    assert direction(metric) == expected


def test_show_imports_neither_mpi_nor_torch(path):
    code = (
        "import sys; from sundsbo_mpi.cli.show import command\n"
        "command(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'mpi4py', 'torch', 'matplotlib', 'sklearn', 'networkx'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
