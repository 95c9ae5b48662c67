import subprocess
import sys

import pytest

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks import TASKS, load_task
from sundsbo_mpi.tasks.base import Task

GOOD = """
class Mine:
    sizes = {"x": 1, "y": 1}
    def __init__(self, *, agent, agents, seed): pass
    def start(self): pass
    def sample(self, k, draw=0): pass
    def upper(self, x, y, batch): pass
    def lower(self, x, y, batch): pass
    def report(self, x, y): return {}
"""


@pytest.mark.parametrize("name", TASKS)
def test_every_listed_task_can_be_loaded_and_is_described(name):
    task = load_task(name)
    assert f"{task.__module__}:{task.__name__}" == TASKS[name].target
    assert TASKS[name].about


@pytest.mark.parametrize("name", ["toy", "quadratic"])
def test_built_tasks_have_every_member(name):
    assert isinstance(load_task(name)(agent=0, agents=2, seed=0), Task)


def test_a_task_from_a_file_may_import_its_neighbours(tmp_path):
    (tmp_path / "beside_mine.py").write_text("VALUE = 3")
    (tmp_path / "mine.py").write_text("from beside_mine import VALUE\n" + GOOD)
    assert load_task(f"{tmp_path}/mine.py:Mine").sizes == {"x": 1, "y": 1}


def test_a_file_is_executed_once(tmp_path):
    runs = tmp_path / "runs"
    (tmp_path / "mine.py").write_text(
        f"with open({str(runs)!r}, 'a') as runs:\n    runs.write('x')\n{GOOD}"
    )
    assert load_task(f"{tmp_path}/mine.py:Mine") is load_task(f"{tmp_path}/mine.py:Mine")
    assert runs.read_text() == "x"


def test_a_file_that_is_not_python_is_named_with_its_line(tmp_path):
    (tmp_path / "mine.py").write_text("a = 1\nclass Mine\n")
    with pytest.raises(UsageError, match=r"mine\.py, line 2, is not Python"):
        load_task(f"{tmp_path}/mine.py:Mine")


def test_a_task_from_a_package(tmp_path, monkeypatch):
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "problem.py").write_text(GOOD)
    monkeypatch.syspath_prepend(tmp_path)
    assert load_task("my_package.problem:Mine").__name__ == "Mine"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("toyy", "did you mean 'toy'"),
        ("away.py:Mine", "away.py does not exist"),
        ("away.py", "names a file and no class"),
        ("not_a_package.problem:Mine", "cannot be imported"),
        pytest.param(f"{'a' * 5000}.py:Mine", r"a\.py does not exist", id="long"),
        ("..:Mine", r"task module '\.\.' cannot be imported"),
        (".x:Mine", r"task module '\.x' cannot be imported"),
        ("sundsbo_mpi..toy:Toy", "cannot be imported"),
        ("sundsbo_mpi.absent:Mine", "cannot be imported"),
        ("sundsbo_mpi.tasks.toy:Tou", "did you mean 'Toy'"),
        ("sundsbo_mpi.tasks.toy:np", "unknown class"),
        ("sundsbo_mpi.tasks.networks:MLP", r"lacks start\(\), sample\(\), upper\(\), lower\(\)"),
    ],
)
def test_what_cannot_be_loaded_is_answered_with_a_sentence(name, sentence):
    with pytest.raises(UsageError, match=sentence) as error:
        load_task(name)
    assert "\n" not in str(error.value)


def test_a_fault_inside_a_user_s_module_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "importing.py").write_text("import absent_dependency\n" + GOOD)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("importing:Mine", f"{tmp_path}/importing.py:Mine"):
        with pytest.raises(ModuleNotFoundError, match="absent_dependency"):
            load_task(name)


def test_the_lists_need_neither_torch_nor_scikit_learn():
    code = (
        "import sys, sundsbo_mpi.tasks, sundsbo_mpi.datasets;"
        "assert not {'torch', 'sklearn', 'mpi4py'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
