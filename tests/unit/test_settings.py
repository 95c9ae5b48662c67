import math
from pathlib import Path

import pytest

from sundsbo_mpi.config.settings import (
    assignments,
    complete,
    merge,
    parameters,
    preset,
    presets,
    read_toml,
    task_defaults,
)
from sundsbo_mpi.datasets import DATASETS
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning
from sundsbo_mpi.tasks.quadratic import Quadratic
from sundsbo_mpi.tasks.toy import Toy


class Options:
    """Stands for whatever has options: one of every kind of default."""

    def __init__(
        self,
        *,
        agent,
        seed,
        needed,
        step: float = 0.1,
        count: int = 5,
        name: str = "digits",
        on: bool = False,
        path: str | None = None,
        share: float | None = None,
    ):
        pass


GIVEN = {"needed": 1}
DEFAULTS = {
    **{"needed": 1, "step": 0.1, "count": 5, "name": "digits", "on": False},
    **{"path": None, "share": None},
}


def test_later_layers_are_stronger_and_keys_are_kept_apart():
    merged = merge({"a": {"x": 1, "y": 2}}, {"b": {"x": 3}}, {"a": {"y": {"scale": 4}}})
    assert merged == {"a": {"x": 1, "y": {"scale": 4}}, "b": {"x": 3}}


def test_merging_leaves_the_layers_alone():
    layer = {"a": {"x": 1}}
    merge(layer, {"a": {"x": 2}})
    assert layer == {"a": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", 0.1),
        ("3", 3),
        ("true", True),
        ("1e-3", 1e-3),
        ('"quoted"', "quoted"),
        ("fashion-mnist", "fashion-mnist"),
        ("runs/one.h5", "runs/one.h5"),
        ("a=b", "a=b"),
        ("", ""),
        ("{scale=0.1, power=0.5}", {"scale": 0.1, "power": 0.5}),
        ("{scale = 2, power = 1}", {"scale": 2, "power": 1}),
        ("{theorem = 0.3}", {"theorem": 0.3}),
        ("[1, 2]", [1, 2]),
        ("[1,\n2]", [1, 2]),
        ("1\nother = 2", "1\nother = 2"),
        ("1\n[other]\nvalue = 2", "1\n[other]\nvalue = 2"),
        pytest.param("9" * 5000, "9" * 5000, id="endless"),
    ],
)
def test_assignments_read_toml_values_or_text(text, value):
    assert assignments([f"algorithm.step_x={text}"]) == {"algorithm": {"step_x": value}}


def test_assignments_keep_tables_apart_and_the_last_one_wins():
    texts = ["run.seed=1", "task.alpha = 0.5", "run.seed=2"]
    assert assignments(texts) == {"run": {"seed": 2}, "task": {"alpha": 0.5}}


@pytest.mark.parametrize("text", ["seed=1", "run.seed", "=1", ".seed=1", "run.=1", "run=1.5"])
def test_assignments_of_another_form_are_refused(text):
    with pytest.raises(UsageError, match=r"expected table\.key=value"):
        assignments([text])


def test_a_file_is_read_as_tables(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text("[algorithm]\nstep_x = {scale = 0.1, power = 0.5}\n[run]\nseed = 3\n")
    assert read_toml(file) == {
        "algorithm": {"step_x": {"scale": 0.1, "power": 0.5}},
        "run": {"seed": 3},
    }


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"seed = 3\n", "sets 'seed' outside a table"),
        (b"[run\n", "is not TOML"),
        (b"\xff\xfe\x00", "is not TOML"),
        (b"[run]\nseed = " + b"9" * 5000, "is not TOML"),
    ],
)
def test_a_file_that_is_not_tables_is_refused(tmp_path, content, complaint):
    file = tmp_path / "run.toml"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=complaint):
        read_toml(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(UsageError, match="cannot read the configuration"):
            read_toml(path)


def test_parameters_are_the_options_and_not_what_the_run_gives():
    assert list(parameters("task", Options)) == list(DEFAULTS)
    assert parameters("task", Toy) == {}


def test_elsewhere_a_seed_is_an_option_like_any_other():
    def options(seed: int = 0, agent: str = "a"): ...

    assert parameters("run", options) == {"seed": 0, "agent": "a"}


def test_defaults_fill_in_and_integers_become_floats_where_the_default_is_one():
    assert complete("task", Options, GIVEN) == DEFAULTS
    found = complete("task", Options, {**GIVEN, "step": 2, "path": "here", "on": True})
    assert found == {**DEFAULTS, "step": 2.0, "path": "here", "on": True}
    assert isinstance(found["step"], float)


def test_a_number_may_stand_where_there_may_be_none():
    share = complete("task", Options, {**GIVEN, "share": 1})["share"]
    assert (share, type(share)) == (1.0, float)
    assert complete("task", Options, {**GIVEN, "share": None})["share"] is None
    with pytest.raises(UsageError, match=r"task\.share is 'half': expected a number"):
        complete("task", Options, {**GIVEN, "share": "half"})


def test_a_schedule_may_stand_where_the_default_is_a_number():
    schedule = {"scale": 0.1, "power": 0.5}
    assert complete("task", Options, {**GIVEN, "step": schedule})["step"] == schedule


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"step": "fast"}, r"task\.step is 'fast': expected a number"),
        ({"step": True}, r"task\.step is True: expected a number"),
        ({"step": [0.1]}, r"task\.step is \[0\.1\]: expected a number"),
        ({"count": 2.5}, r"task\.count is 2\.5: expected an integer"),
        ({"count": True}, r"task\.count is True: expected an integer"),
        ({"count": {"scale": 1.0, "power": 0.0}}, r"task\.count is \{"),
        ({"name": 7}, r"task\.name is 7: expected text"),
        ({"on": 1}, r"task\.on is 1: expected true or false"),
        ({"on": "yes"}, r"task\.on is 'yes': expected true or false"),
        ({"path": 3}, r"task\.path is 3: expected text"),
        ({"count": math.nan}, r"task\.count is nan: expected an integer"),
        ({"step": 10**400}, r"task\.step is 10+\.\.\. \(401 characters\): expected whole numbers"),
        ({"count": -(2**63)}, r"task\.count is -9223372036854775808: expected whole numbers below"),
        ({"needed": 16**5000}, r"task\.needed is an integer of thousands of digits: expected"),
        ({"on": "y" * 5000}, r"task\.on is 'y+\.\.\. \(5002 characters\): expected true"),
    ],
)
def test_values_of_another_kind_are_refused(wrong, complaint):
    with pytest.raises(UsageError, match=complaint):
        complete("task", Options, {**GIVEN, **wrong})


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "2026-11-28", "12:00:00"])
def test_words_that_toml_takes_for_something_else_are_text_where_text_is_expected(word):
    given = assignments([f"task.path={word}", f"task.name={word}"])["task"]
    found = complete("task", Options, {**GIVEN, **given})
    assert (found["path"], found["name"]) == (word, word)


def test_what_no_setting_is_is_refused_wherever_it_stands(tmp_path):
    file = tmp_path / "run.toml"
    for content, complaint in (
        ('[task]\npath = "a\\u0000"\n', r"run\.toml has 'a\\x00', a text with a zero byte"),
        ("[task]\npath = [2026-11-28]\n", "has the date 2026-11-28, expected text"),
        ("[task]\n" + "a." * 9 + "a = 1\n", "more than 8 tables or lists within one another"),
        ("#" * 2**20 + "\n", "has more than 1,048,576 bytes"),
    ):
        file.write_text(content)
        with pytest.raises(UsageError, match=complaint):
            read_toml(file)
    with pytest.raises(UsageError, match=r"--set has 'a\\x00', a text with a zero byte"):
        assignments(["task.path=a\0"])
    with pytest.raises(UsageError, match="--set has more than 8 tables"):
        assignments(["task.path=" + "[" * 9 + "]" * 9])
    assert assignments(["task.path=" + "[" * 7 + "]" * 7])["task"]


def test_unknown_keys_are_named_beside_the_nearest():
    with pytest.raises(
        UsageError, match=r"unknown setting 'task\.stp': did you mean 'task\.step'\?.*task\.count"
    ):
        complete("task", Options, {**GIVEN, "stp": 1.0})
    with pytest.raises(UsageError, match=r"unknown setting 'task\.agent'"):
        complete("task", Options, {**GIVEN, "agent": 1})


def test_an_option_without_default_must_be_given():
    with pytest.raises(UsageError, match=r"task\.needed has no default: give it with --set"):
        complete("task", Options, {})


def test_presets_are_those_in_the_package():
    assert {"paper/hyper-cleaning", "paper/toy"} <= set(presets())
    assert not any(name.startswith("default/") for name in presets())
    assert preset("paper/toy")["algorithm"]["gamma"] == 10.0


@pytest.mark.parametrize("name", ["paper/toi", "default/toy", "../secret", "paper"])
def test_other_presets_are_refused_with_the_nearest(name):
    with pytest.raises(UsageError, match=r"unknown preset .*known are .*paper/toy"):
        preset(name)


class Own(Toy):
    defaults = {"run": {"iterations": 7}}  # noqa: RUF012  (as a user would write it)


def test_a_users_class_brings_its_own_defaults():
    assert task_defaults("mine.py:Own", None, Own) == Own.defaults
    assert task_defaults("mine.py:Toy", None, Toy) == {}


def test_a_built_in_task_has_packaged_defaults():
    assert task_defaults("toy", None, Toy)["algorithm"]["gamma"] == 10.0
    assert task_defaults("quadratic", None, Quadratic)["algorithm"]["gamma"] > 0


@pytest.mark.parametrize(
    ("task", "datasets"),
    [
        ("hyper-cleaning", DATASETS),
        ("hyper-representation", DATASETS),
        ("hyperparameter", ("synthetic", "digits", "mnist")),
    ],
)
def test_every_data_set_has_defaults_of_its_own(task, datasets):
    for dataset in datasets:
        found = task_defaults(task, dataset, HyperCleaning)
        assert {"step_x", "step_y", "step_theta", "mu0", "p", "gamma"} <= set(found["algorithm"])
        assert found["task"]["dataset"] == dataset


@pytest.mark.parametrize("dataset", ["d" * 5000, "/../../paper/toy", "../x"], ids=len)
def test_a_data_set_that_makes_no_path_has_the_defaults_of_its_task(dataset):
    found = task_defaults("hyper-cleaning", dataset, HyperCleaning)
    assert found == task_defaults("hyper-cleaning", "none", HyperCleaning)


def test_every_packaged_toml_is_tables():
    root = Path(__file__).parents[2] / "src" / "sundsbo_mpi" / "presets"
    files = sorted(root.rglob("*.toml"))
    assert files
    for file in files:
        assert set(read_toml(file)) <= {"run", "task", "algorithm"}, file
