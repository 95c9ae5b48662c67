"""``sundsbo-mpi list``: that every option of methods and tasks is told, with what it is for."""

import inspect
import re

import pytest
from click.testing import CliRunner

from sundsbo_mpi.algorithms import METHODS
from sundsbo_mpi.cli.list import command
from sundsbo_mpi.config.describing import described
from sundsbo_mpi.config.settings import GIVEN_BY_THE_RUN, parameters
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks import MEMBERS, TASKS, load_task

OWN = '''
class Own:
    """My problem.

    It is hard.

    Args:
        size: How large
            it is: very.
        plain (optional): So.

    Source: a dream.
    """

    def __init__(self, *, agent, agents, seed, size: int, plain=0.5, rate: "float | None" = None,
                 odd=print, word="a"):
        pass
'''


def listed(*arguments):
    result = CliRunner().invoke(command, arguments, env={"COLUMNS": "160"})
    if result.exception:
        raise result.exception
    return result.output


def rows(text):
    """Return the cells of the table by option; columns are two blanks apart at least."""
    cells = [[c.strip() for c in line.split("  ") if c.strip()] for line in text.splitlines()]
    return {row[0]: row[1:] for row in cells if row and row[0].startswith(("task.", "algorithm."))}


TYPES = {"int", "float", "str", "bool", "list", "tuple", "dict", "bytes", "Scheduled"}
"""What an annotation would leave there that has no words."""
CLASSES = [
    *(("algorithm", name, entry.options) for name, entry in METHODS.items()),
    *(("task", name, load_task(name)) for name in TASKS),
]


def test_no_name_is_that_of_a_method_and_of_a_task():
    assert not METHODS.keys() & TASKS.keys()


@pytest.mark.parametrize(("table", "name", "target"), CLASSES)
def test_every_option_is_told_with_what_it_takes_and_what_it_is_for(table, name, target):
    known = parameters(table, target)
    options = described(table, target)
    assert {o.name: o.default for o in options} == known
    assert [o.name for o in options if not o.meaning] == []
    assert all(o.expected for o in options)
    assert not TYPES & {word for o in options for word in re.findall(r"\w+", o.expected)}
    assert set(rows(listed(name))) == {f"{table}.{option}" for option in known}


@pytest.mark.parametrize(("table", "name", "target"), CLASSES)
def test_no_docstring_tells_of_an_option_that_is_not_there(table, name, target):
    given = GIVEN_BY_THE_RUN.get(table, frozenset())
    taken = set(inspect.signature(target).parameters)
    for owner in target.__mro__:
        _, _, section = inspect.cleandoc(owner.__doc__ or "").partition("\nArgs:\n")
        entries = [line for line in section.splitlines() if line[:4] == "    " and line[4] != " "]
        told = {line.split(":")[0].strip() for line in entries}
        assert told <= taken | given, name


def test_a_method_is_told_with_its_own_options_first():
    text = listed("ma-dsbo")
    assert text.startswith("ma-dsbo: MA-DSBO: y by T steps")
    found = rows(text)
    assert next(iter(found)) == "algorithm.step_x"
    meaning = "Number N of steps on z in an iteration."
    assert found["algorithm.inner_z"] == ["an integer", "5", meaning]
    assert found["algorithm.step_y"] == ["a number or schedule", "0.03", "Step of y."]
    assert found["algorithm.wire"][:2] == ["text", "not set"]
    assert found["algorithm.private"][:2] == ["true or false", "false"]
    assert "{scale=a, power=p}" in text
    # A class may give an option of its base another default.
    assert rows(listed("meha"))["algorithm.p"] == ["a number", "0.25", "How fast μ_k falls."]


def test_a_task_is_told_without_what_the_run_gives_it():
    text = listed("quadratic")
    assert text.startswith(f"quadratic: {TASKS['quadratic'].about}\n")
    assert set(rows(text)) == {f"task.{key}" for key in ("d_x", "d_y", "heterogeneity", "noise")}
    assert rows(text)["task.d_x"] == ["an integer", "5", "Length of x."]
    assert "schedule" not in text
    assert "It has no options." in listed("toy")


def test_a_task_of_ones_own_is_told_as_far_as_it_tells(tmp_path):
    path = tmp_path / "own.py"
    members = "".join(f"    def {member}(self): pass\n" for member in MEMBERS)
    path.write_text(f"{OWN}\n{members}")
    text = listed(f"{path}:Own")
    assert text.splitlines()[0].endswith(": My problem.")
    found = rows(text)
    assert found["task.size"] == ["an integer", "must be given", "How large it is: very."]
    assert found["task.plain"] == ["a number", "0.5", "So."]
    assert found["task.rate"] == ["a number", "not set"]
    assert found["task.odd"][-1] == "<built-in function print>"
    assert found["task.word"] == ["text", '"a"']


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(UsageError, match="unknown method or task 'sun-dsbo-gg': did you mean 'sun"):
        listed("sun-dsbo-gg")
    with pytest.raises(UsageError, match="names a file and no class"):
        listed("own.py")


def test_the_list_of_everything_says_how_to_see_options():
    text = listed()
    assert text.rstrip().endswith("sundsbo-mpi list NAME")
    for name in [*METHODS, *TASKS]:
        assert name in text
