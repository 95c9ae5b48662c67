"""The examples are sound tasks, learn what they say, and print what they promise."""

import json
import sys
import warnings
from pathlib import Path

import bench
import h5py
import numpy as np
import pytest
import torch
from lockstep import Lockstep
from PIL import Image

from sundsbo_mpi.config.settings import complete
from sundsbo_mpi.errors import DataNote, UsageError
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
    shards = list(task_class.shards(**whole)) if hasattr(task_class, "shards") else None
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


TABLE = """a,b,label,trusted
0.1,7,yes,0
0.2,7,no,1
0.4,7,"in two
lines",0

0.1,7.0,yes,1.0
"""


def table(path, text=TABLE, encoding="utf-8"):
    path.write_text(text, encoding=encoding, newline="")
    return example("reweighting").read(path, "label", "trusted")


def test_reweighting_reads_what_spreadsheets_write(tmp_path):
    plain = table(tmp_path / "a.csv")
    assert plain.labels.tolist() == [2, 1, 0, 2]
    assert plain.trusted.tolist() == [0, 1, 0, 1]
    assert plain.lines == [2, 3, 5, 7]
    np.testing.assert_allclose(plain.inputs.mean(0), 0, atol=1e-15)
    np.testing.assert_allclose(plain.inputs[:, 0].std(), 1)
    windows = TABLE.replace("\n", "\r\n").replace("two\r\n", "two\n")
    for text, encoding in ((windows, "utf-8"), (TABLE, "utf-8-sig")):
        found = table(tmp_path / "a.csv", text, encoding)
        assert example("reweighting").cells(tmp_path / "a.csv")[0] == TABLE.splitlines()[0].split(
            ","
        )
        for name, column in plain._asdict().items():
            np.testing.assert_array_equal(getattr(found, name), column)


def test_reweighting_makes_nothing_of_a_column_that_never_changes(tmp_path):
    """Also of one whose computed deviation is not quite 0."""
    assert np.full(12, 0.1).std() > 0
    rows = "".join(f"{i},0.1,{i % 2},{i % 3 == 0:d}\n" for i in range(12))
    found = table(tmp_path / "a.csv", "a,b,label,trusted\n" + rows)
    np.testing.assert_allclose(found.inputs[:, 1], 0, atol=1e-15)


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        (
            "0.2,7",
            ",7",
            "line 3 of .*a.csv has '' in column 'a': expected a finite number; mend it",
        ),
        ("0.2,7", "0.2,n/a", "line 3 of .* has 'n/a' in column 'b': expected a finite number"),
        ("0.1,7.0", "-inf,7.0", "line 7 of .* has '-inf' in column 'a': expected a finite number"),
        ("0.1,7.0", "0.1,nan", "line 7 of .* has 'nan' in column 'b': expected a finite number"),
        ("no,1", "no,2", "line 3 of .* has '2' in column 'trusted': expected 0 or 1"),
        ("no,1", "no,", "line 3 of .* has '' in column 'trusted': expected 0 or 1"),
        ("no,1", " ,1", "line 3 of .* has nothing in column 'label'"),
        ("no,1", "no", "line 3 of .* has 3 cells, but the header has 4: mend the row"),
        ("no,1", "no,1,2", "line 3 of .* has 5 cells, but the header has 4: mend the row"),
        ("a,b", "a,a", "has two columns 'a': rename one of them"),
        ("label,trusted", "label,sure", r"no rows with a column 'trusted': set task\.trusted"),
        (TABLE, "", r"no rows with a column 'label': set task\.label"),
        (TABLE, "label,trusted\na,0\nb,1\n", "has 2 classes and 0 columns of numbers"),
        (TABLE, "a,label,trusted\n1,b,0\n2,b,1\n", "has 1 classes and 1 columns of numbers"),
    ],
)
def test_reweighting_names_what_it_cannot_use(tmp_path, right, wrong, words):
    with pytest.raises(UsageError, match=words):
        table(tmp_path / "a.csv", TABLE.replace(right, wrong))


def test_reweighting_names_a_file_that_it_cannot_read(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*utf-8.*; expected a CSV file in UTF-8"):
        table(tmp_path / "a.csv", TABLE.replace("no", "né"), "latin-1")
    with pytest.raises(UsageError, match=r"cannot read .*No such file"):
        example("reweighting").read(tmp_path / "none.csv", "label", "trusted")


def test_reweighting_says_what_is_too_little(tmp_path):
    table(tmp_path / "a.csv")
    with pytest.raises(UsageError, match="2 rows that are not trusted and 2 that are: too few for"):
        run("reweighting", {"csv": str(tmp_path / "a.csv")}, 1)


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
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("the run found, rate 0.5 and penalty 0.01: 9")
    assert second.startswith("a grid search found, {'penalty': ")


def test_fewshot_learns_features_that_serve_new_classes(data):
    _, before, after = run("fewshot", data["fewshot"], 30)
    assert before["query_loss"] == pytest.approx(np.log(3), rel=1e-5)  # three ways, heads at zero
    assert after["query_loss"] < 0.8 * before["query_loss"]
    assert after["new_accuracy"] > 60


def test_fewshot_says_what_is_too_little(data):
    options = {**data["fewshot"], "shots": 9}
    with pytest.raises(UsageError, match=r"10 classes with 5 images for each of 3 agents"):
        run("fewshot", options, 1)


@pytest.fixture
def pictures(tmp_path):
    """Two classes of two images, and what computers leave in folders."""
    for name in ("a/1.png", "a/2.PNG", "b/1.png", "b/2.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (4, 4), color=100).save(tmp_path / name, format="png")
    return tmp_path


def test_fewshot_leaves_out_what_is_no_image_and_says_so(pictures):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataNote)
        classes = example("fewshot").read(pictures, 2)
    assert [images.shape for images in classes] == [(2, 1, 2, 2)] * 2
    for name in (".DS_Store", "README.md", "a/Thumbs.db", "a/._1.png", "b/notes.txt"):
        (pictures / name).write_bytes(b"\0\5\x16\7")
    for name in (".ipynb_checkpoints", "__MACOSX", "b/more.png"):
        (pictures / name).mkdir()
    words = r"left out, are \.DS_Store, \.ipynb_checkpoints, README.md, \.\.\.$"
    with pytest.warns(DataNote, match=words):
        again = example("fewshot").read(pictures, 2)
    assert all(map(np.array_equal, again, classes))


def test_fewshot_names_an_image_that_it_cannot_read(pictures):
    whole = (pictures / "b/1.png").read_bytes()
    for damaged in (b"", b"no image", whole[:-20]):
        (pictures / "b/1.png").write_bytes(damaged)
        with pytest.raises(UsageError, match=r"cannot read the image .*b/1\.png: .*; mend it"):
            example("fewshot").read(pictures, 2)


def test_fewshot_names_a_folder_that_it_cannot_use(pictures):
    (pictures / "empty").mkdir()
    with pytest.raises(UsageError, match="empty has no images: put some there"):
        example("fewshot").read(pictures, 2)
    for place in (pictures / "none", pictures / "a/1.png"):
        with pytest.raises(UsageError, match=rf"cannot read {place}: .*; set task\.folder"):
            example("fewshot").read(place, 2)
