"""The layers of a configuration: who wins, and what is refused."""

import json

import pytest

from sundsbo_mpi.config import resolving as module
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.config.settings import presets
from sundsbo_mpi.errors import UsageError

USERS_TASK = """
class Mine:
    sizes = {"x": 1, "y": 1}
    defaults = {
        "run": {"iterations": 11, "seed": 11, "eval_every": 11, "dtype": "float64"},
        "algorithm": {"step_x": 1.1, "step_y": 1.1},
    }

    def __init__(self, *, agent, agents, seed, weight: float = 1.5, dataset: str = "a"):
        pass

    def start(self): ...
    def sample(self, k, draw=0): ...
    def upper(self, x, y, batch): ...
    def lower(self, x, y, batch): ...
    def report(self, x, y): ...
"""


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(USERS_TASK)
    return f"{file}:Mine"


@pytest.fixture
def written(tmp_path):
    def write(text):
        file = tmp_path / "run.toml"
        file.write_text(text)
        return str(file)

    return write


def test_without_a_wish_it_is_hyper_cleaning_with_gradient_tracking():
    config = resolve(Request())
    assert config.task["name"] == "hyper-cleaning"
    assert config.task["dataset"] == "digits"
    assert config.algorithm["name"] == "sun-dsbo-gt"
    assert config.output.file is None


def test_every_layer_beats_the_one_before(mine, written, monkeypatch):
    """Program < task < preset < file < flags < --set, each seen by the key it is last to set."""
    monkeypatch.setattr(
        module,
        "preset",
        lambda name: {
            "run": {"seed": 22, "eval_every": 22},
            "algorithm": {"step_y": 2.2, "gamma": 2.2, "mu0": 2.2, "rho_x": 2.2},
        },
    )
    file = written(
        "[run]\neval_every = 33\n[algorithm]\ngamma = 3.3\nmu0 = 3.3\nrho_x = 3.3\n"
        "[task]\nweight = 3.3\n"
    )
    config = resolve(
        Request(
            flags={"task": {"name": mine}, "algorithm": {"mu0": 4.4, "rho_x": 4.4}},
            sets=("algorithm.rho_x=0.55",),
            preset="any",
            file=file,
        )
    )
    assert config.run.dtype == "float64"  # the task's, over the program's float32
    assert (config.run.iterations, config.run.seed, config.run.eval_every) == (11, 22, 33)
    assert config.task == {"name": mine, "weight": 3.3, "dataset": "a"}
    chosen = {key: config.algorithm[key] for key in ("step_theta", "step_x", "step_y")}
    assert chosen == {"step_theta": 0.01, "step_x": 1.1, "step_y": 2.2}
    assert [config.algorithm[key] for key in ("gamma", "mu0", "rho_x")] == [3.3, 4.4, 0.55]


def test_the_task_and_the_method_may_come_from_any_layer(written):
    file = written('[task]\nname = "toy"\n[algorithm]\nname = "sun-dsbo-se"\n')
    config = resolve(Request(file=file))
    assert (config.task, config.algorithm["name"]) == ({"name": "toy"}, "sun-dsbo-se")
    assert config.algorithm["gamma"] == 10.0  # the toy's own default
    assert resolve(Request(file=file, sets=("task.name=quadratic",))).task["d_x"] == 5


def test_schedules_come_as_toml_from_a_file_and_from_the_command_line(written):
    file = written('[task]\nname = "toy"\n[algorithm]\nstep_x = {scale = 0.1, power = 0.5}\n')
    config = resolve(Request(file=file, sets=("algorithm.step_y={theorem=0.3}",)))
    assert config.algorithm["step_x"] == {"scale": 0.1, "power": 0.5}
    assert config.algorithm["step_y"] == {"theorem": 0.3}
    assert resolve(Request(file=file, sets=("algorithm.step_x=2",))).algorithm["step_x"] == 2.0


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_a_complete_configuration(name):
    config = resolve(Request(preset=name))
    assert config.run.iterations > 0


@pytest.mark.parametrize("task", ["toy", "quadratic", "hyper-cleaning"])
def test_a_configuration_says_everything_needed_to_configure_it_again(task, written):
    config = resolve(Request(flags={"task": {"name": task}}, sets=("run.seed=9",)))
    tables = json.loads(json.dumps(config.as_dict()))
    known = {
        table: {key: value for key, value in values.items() if value is not None}
        for table, values in tables.items()
    }
    assert resolve(Request(flags=known)) == config


@pytest.mark.parametrize(
    ("sets", "complaint"),
    [
        ("algorithms.gamma=1", r"unknown table 'algorithms': did you mean 'algorithm'\?"),
        ("algorithm.step_xx=1", r"unknown setting 'algorithm\.step_xx': did you mean 'algo"),
        ("run.iteration=1", r"unknown setting 'run\.iteration': did you mean 'run\.iterations'\?"),
        ("task.d_xx=1", r"unknown setting 'task\.d_xx': did you mean 'task\.d_x'\?"),
        ("task.seed=1", r"unknown setting 'task\.seed'"),
        ("task.name=quadratc", r"unknown task 'quadratc': did you mean 'quadratic'\?"),
        ("algorithm.name=sun-dsbo-gd", r"unknown algorithm 'sun-dsbo-gd': did you mean 'sun-dsbo-"),
        ("run.dtype=float46", r"unknown dtype 'float46': did you mean 'float64'\?"),
        ("run.transport=sharde", r"unknown transport 'sharde': did you mean 'shared'\?"),
        ("run.iterations=many", r"run\.iterations is 'many': expected an integer"),
        (
            "run.iterations=-1",
            r"run\.iterations is -1: expected an integer of at least 0 and",
        ),
        ("run.eval_every=0", r"run\.eval_every is 0: expected an integer of at least 1 and"),
        ("run.max_walltime=-1", r"run\.max_walltime is -1\.0: expected a number of at least 0"),
        ("run.max_walltime=inf", r"run\.max_walltime is inf: expected a number of at least 0"),
        ("run.overlap=alway", r"unknown overlap 'alway': did you mean 'always'"),
        ("run.seed=1.5", r"run\.seed is 1\.5: expected an integer"),
        ("run.stationarity=1", r"run\.stationarity is 1: expected true or false"),
        ("algorithm.gamma=big", r"algorithm\.gamma is 'big': expected a number"),
        ("algorithm.lazy=1", r"algorithm\.lazy is 1: expected true or false"),
        ("algorithm.x=1", r"algorithm\.x is 1: expected text"),
        ("topology.undirected=yes", r"topology\.undirected is 'yes': expected true or false"),
    ],
)
def test_what_cannot_be_understood_is_refused_in_one_sentence(sets, complaint):
    with pytest.raises(UsageError, match=complaint):
        resolve(Request(flags={"task": {"name": "quadratic"}}, sets=(sets,)))


@pytest.mark.parametrize("transport", ["shared", "neighbor", "persistent"])
def test_gpu_buffers_go_one_by_one(transport):
    sets = ("run.gpu_direct=true", f"run.transport={transport}")
    with pytest.raises(UsageError, match=r"gpu_direct .* use --transport p2p"):
        resolve(Request(flags={"task": {"name": "quadratic"}}, sets=sets))


def test_an_unknown_preset_is_refused():
    with pytest.raises(UsageError, match=r"unknown preset 'paper/toi': did you mean 'paper/toy'\?"):
        resolve(Request(preset="paper/toi"))


FOR_MANY = """
[algorithm]
name = "sun-dsbo-gt"
step_x = 0.5
[algorithm."sun-dsbo-*"]
step_y = 0.25
mu0 = 3.0
[algorithm."*-se"]
mu0 = 4.0
step_theta = {scale = 0.125, power = 0.5}
"""


@pytest.mark.parametrize(
    ("name", "mu0", "step_theta"),
    [("sun-dsbo-gt", 3.0, 0.01), ("sun-dsbo-se", 4.0, {"scale": 0.125, "power": 0.5})],
)
def test_a_file_may_have_tables_for_methods_of_a_pattern(written, name, mu0, step_theta):
    found = resolve(
        Request(
            file=written(FOR_MANY),
            flags={"task": {"name": "quadratic"}, "algorithm": {"name": name}},
            sets=("algorithm.gamma=7.0",),
        )
    ).algorithm
    assert (found["step_x"], found["step_y"], found["gamma"]) == (0.5, 0.25, 7.0)
    assert found["mu0"] == mu0
    assert found["step_theta"] == (0.1 if step_theta == 0.01 else step_theta)  # the task's default


def test_a_table_for_no_method_is_refused(written):
    with pytest.raises(UsageError, match=r"sun-dbso-\*.* is for no method"):
        resolve(Request(file=written('[algorithm."sun-dbso-*"]\nstep_x = 1.0\n')))


def test_a_table_for_a_misspelt_method_is_refused(written):
    with pytest.raises(UsageError, match=r"'sun-dsbo-tg': did you mean 'sun-dsbo-gt'\?"):
        resolve(Request(file=written("[algorithm.sun-dsbo-tg]\nstep_x = 1.0\n")))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('name = "sparkle-gt"', r"unknown setting of \[algorithm\.\"sparkle-\*\"\] 'name'"),
        ("step_q = 1.0", r"\[algorithm\.\"sparkle-\*\"\] 'step_q': did you mean 'step_"),
    ],
)
def test_a_table_for_other_methods_is_checked_too(written, text, complaint):
    with pytest.raises(UsageError, match=complaint):
        resolve(Request(file=written(f'[algorithm."sparkle-*"]\n{text}\n')))


def test_a_table_has_what_any_of_its_methods_has(written):
    """Of those that match, d-psgd alone has no step_y."""
    table = written('[algorithm."*"]\nstep_y = 0.25\n')
    assert resolve(Request(file=table)).algorithm["step_y"] == 0.25


@pytest.mark.parametrize("pattern", ["sparkle-*", "sun-dsbo-gt", "*"])
def test_tables_for_methods_are_not_for_the_command_line(pattern):
    with pytest.raises(UsageError, match=r"belongs into a configuration file: set its keys one"):
        resolve(Request(sets=(f"algorithm.{pattern}={{step_x=0.7}}", "algorithm.step_x=0.1")))


def test_one_file_cannot_be_run_file_and_trace():
    layer = {"task": {"name": "quadratic"}, "output": {"file": "a", "trace": "./a"}}
    with pytest.raises(UsageError, match="both 'a': name two different files"):
        resolve(Request(flags=layer))
