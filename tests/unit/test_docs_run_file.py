"""The page on run files has everything that is in a run file, and nothing else."""

import re
from types import SimpleNamespace

import fenced
import h5py
import numpy as np
import pytest
import synthetic_run

from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.runfile import TRANSPORT, RunFile
from sundsbo_mpi.runfile.resuming import BEGINS
from sundsbo_mpi.runfile.schema import LABEL_COUNTS, STATUSES
from sundsbo_mpi.running.provenance import attributes
from sundsbo_mpi.topology import BUILDERS, SEQUENCES

PAGE = (fenced.DOCS / "run-file.md").read_text(encoding="utf-8")
ADDED_LATER = {"format", "status", "ended", BEGINS, "restarts"}
"""Attributes that the run file itself writes."""
SIZES = {"n": 3, "E": 6, "R": 6, "T n": 3, "e": 0, "C": 4, "d": {"x": 4, "y": 5, "theta": 5}}
KINDS = {"float64": "f", "int64": "i", "text": "O", "run's dtype": "f"}


def rows(title):
    """Return the cells of the table below a heading."""
    text = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ") for line in text.splitlines() if line.startswith("| `")]
    return [re.split(r" \| ", line) for line in lines]


@pytest.fixture
def stored(tmp_path):
    """A run file with everything that one may have, open for reading."""
    counts = np.arange(12).reshape(3, 4)
    info = synthetic_run.plan().agents_info | dict.fromkeys(LABEL_COUNTS, counts)
    plan = synthetic_run.plan(agents_info=info, save_final=True)
    RunFile.create(tmp_path / "run.h5", plan, overwrite=False).close()
    with h5py.File(tmp_path / "run.h5") as file:
        yield file


def data_sets(file):
    found = {}
    file.visititems(lambda n, o: found.update({n: o}) if isinstance(o, h5py.Dataset) else None)
    return found


def general(path):
    """Return a path with the names of variables and metrics left open."""
    group = path.rpartition("/")[0]
    open_names = {"metrics/task": "NAME"}
    open_names |= dict.fromkeys(("metrics/consensus", "metrics/invariant", "final"), "VARIABLE")
    return f"/{group}/{open_names[group]}" if group in open_names else f"/{path}"


def test_every_data_set_is_described_and_every_description_is_of_one(stored):
    described = {cells[0].strip("`"): cells for cells in rows("Layout")}
    assert {general(path) for path in data_sets(stored)} == set(described)


def test_shapes_and_types_are_the_described_ones(stored):
    described = {cells[0].strip("`"): cells for cells in rows("Layout")}
    for path, data in data_sets(stored).items():
        _, shape, kind, *_ = described[general(path)]
        expected = [SIZES.get(name) or literal(name) for name in letters(shape)]
        sizes = [s[path.rpartition("/")[2]] if isinstance(s, dict) else s for s in expected]
        assert list(data.shape) == sizes, path
        assert data.dtype.kind == KINDS[kind], path


def letters(shape):
    return [name.strip() for name in shape.strip("()").split(",") if name.strip()]


def literal(name):
    return int(name) if name.isdigit() else 0


def written(weights):
    prepared = SimpleNamespace(
        config=resolve(Request()), weights=weights, node_ids=("0",), transport="p2p", notes=()
    )
    return set(attributes(prepared, "MPI", ""))


def test_every_attribute_is_described_and_every_description_is_of_one():
    told = {name for cells in rows("Attributes of the root") for name in names(cells[0])}
    fixed = written(BUILDERS["ring"](4))
    drawn = written(SEQUENCES["random"](6, neighbours=2))
    assert "lambda_min" in fixed
    assert "topology_recipe" in drawn
    assert told == fixed | drawn | ADDED_LATER


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def test_every_status_and_kind_of_event_is_named():
    for status in STATUSES:
        assert f"`{status}`" in PAGE
    source = "".join(p.read_text() for p in (fenced.ROOT / "src" / "sundsbo_mpi").rglob("*.py"))
    kinds = set(re.findall(r"(?:\bEvent|\.event)\(.+?, \"([a-z ]+)\", ", source))
    line = next(line for line in PAGE.splitlines() if line.startswith("Kinds of events"))
    assert set(names(line)) == kinds | {TRANSPORT}


def test_the_example_reads_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plan = synthetic_run.plan(task_metrics=("upper_loss",))
    run = RunFile.create(tmp_path / "run.h5", plan, overwrite=False)
    run.append(synthetic_run.row(0, plan))
    (example,) = [b for b in fenced.blocks(fenced.DOCS / "run-file.md") if b.language == "python"]
    exec(compile(example.text, example.where, "exec"), {})
    run.close()
    assert capsys.readouterr().out.split() == ["running", "1", "80.0"]
