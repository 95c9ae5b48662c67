"""The template that ``sundsbo-mpi task new`` writes is a task that runs."""

import bench
import pytest
import torch
from click.testing import CliRunner
from lockstep import Lockstep

from sundsbo_mpi.cli.task import command
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.taskcheck import Verdict, check_task
from sundsbo_mpi.tasks import load_task


def new(name):
    return CliRunner().invoke(command, ["new", name], standalone_mode=False)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "file", "class_name"),
    [
        ("ridge", "ridge.py", "Ridge"),
        ("my_own-task.py", "my_own-task.py", "MyOwnTask"),
        ("below/myTask", "below/myTask.py", "MyTask"),
    ],
)
def test_the_file_and_its_class_are_named_as_asked(here, name, file, class_name):
    (here / "below").mkdir()
    said = new(name).output
    assert said == f"wrote {file}; test it with: sundsbo-mpi task check {file}:{class_name}\n"
    assert load_task(f"{here / file}:{class_name}").__name__ == class_name


def test_the_template_passes_and_learns(here):
    new("tried")
    findings = check_task(f"{here / 'tried.py'}:Tried", 3, ["task.features=4"])
    assert {f.verdict for f in findings} <= {Verdict.PASS, Verdict.ABSENT}

    tried = load_task(f"{here / 'tried.py'}:Tried")
    tasks = [tried(agent=i, agents=3, seed=0, features=4) for i in range(3)]
    steps = {"step_x": 0.1, "step_y": 0.1, "step_theta": 0.1}
    run = Lockstep(bench.build("sun-dsbo-gt", 3, **steps), tasks, bench.ring(3, 0.5)).run(100)
    y = torch.from_numpy(run.rows("y")).mean(0)
    truth = torch.linspace(-1, 1, 4)
    assert (y - truth).norm() < truth.norm() / 2
    reports = [
        task.report(*map(torch.from_numpy, (run.rows("x")[0], run.rows("y")[0]))) for task in tasks
    ]
    assert all(count == 50 for _, count in (r["validation_error"] for r in reports))


def test_a_file_is_never_replaced(here):
    (here / "mine.py").write_text("precious")
    assert "'mine.py' exists already: choose another name" in str(new("mine").exception)
    assert (here / "mine.py").read_text() == "precious"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("1st", "begin with a letter"),
        ("two words", "gives no name for a class"),
        ("none", "gives no name for a class"),
        ("nowhere/task", "cannot write 'nowhere/task.py'"),
    ],
)
@pytest.mark.usefixtures("here")
def test_names_that_cannot_be_are_refused(name, words):
    error = new(name).exception
    assert isinstance(error, UsageError)
    assert words in str(error)
