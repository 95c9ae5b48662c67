"""Every setting with where it is from, as a file that configures the same run again."""

import dataclasses
import math
import tomllib

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from sundsbo_mpi.algorithms import METHODS
from sundsbo_mpi.checkpoint import About, Manifest
from sundsbo_mpi.cli.resume import command as resume_command
from sundsbo_mpi.cli.run import command as run_command
from sundsbo_mpi.comm import launcher, world
from sundsbo_mpi.config.resolving import Request, resolve, resolved
from sundsbo_mpi.config.settings import assignments, presets
from sundsbo_mpi.config.toml_text import comment, document, value_text
from sundsbo_mpi.reproduce.tuning import Trial, write_tuned

SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def the_same(one, other):
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float) and math.isnan(other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(the_same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(the_same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


@given(value=VALUES)
def test_a_value_reads_back_from_its_line(value):
    text = value_text(value)
    assert "\n" not in text
    assert the_same(tomllib.loads(f"v = {text}")["v"], value)


@given(value=SCALARS | st.lists(SCALARS.filter(lambda v: not isinstance(v, str)), max_size=3))
def test_a_value_reads_back_from_set(value):
    text = value_text(value)
    assert the_same(assignments([f"task.odd={text}"])["task"]["odd"], value)


@settings(max_examples=15)
@given(tables=st.dictionaries(st.text(max_size=4), st.dictionaries(st.text(max_size=4), VALUES)))
def test_a_document_reads_back_whatever_its_comments_say(tables):
    origins = {table: dict.fromkeys(of, "file a\nb\r[c]") for table, of in tables.items()}
    assert the_same(tomllib.loads(document(tables, origins)), tables)


@given(text=st.text())
def test_a_comment_is_one_line_whatever_it_says(text):
    written = comment(text)
    assert tomllib.loads(f"{written}\na = 1  {written}\n") == {"a": 1}
    assert len(written.splitlines()) == 1
    assert written.encode().decode() == written  # also of what was no text, in a file's name


def test_a_comment_says_what_it_is_given():
    assert comment("mpirun -n 2 'a b' \"c\" #é") == "# mpirun -n 2 'a b' \"c\" #é"
    assert comment("a\nb\t\x1b") == r"# a\nb\t\x1b"


def test_tuned_steps_can_be_read_whatever_the_command_was(tmp_path):
    """Its comments stay beside the next ones."""
    path, winners = tmp_path / "a.toml", {"meha": Trial("meha", {"step_x": 0.1}, ())}
    for odd in ("tab:dcd --set 'task.a=\nb'", 'tab:dcd --set\r\x85\x1b"', "tab:dcd"):
        write_tuned(path, "paper/toy", winners, f"reproduce {odd}")
    text = path.read_text(encoding="utf-8")
    assert tomllib.loads(text)["algorithm"]["meha"] == {"step_x": 0.1}
    assert [line for line in text.splitlines() if "sundsbo-mpi reproduce tab:dcd" in line] == [
        r"#   sundsbo-mpi reproduce tab:dcd --set 'task.a=\nb'",
        r'#   sundsbo-mpi reproduce tab:dcd --set\r\x85\x1b"',
        "#   sundsbo-mpi reproduce tab:dcd",
    ]


def test_what_is_not_set_is_a_comment():
    text = document({"run": {"a": None, "b": 1}}, {"run": {"a": "program default", "b": "flag"}})
    assert text == "[run]\n# a is not set: program default\nb = 1  # flag\n"


@pytest.mark.parametrize("wish", [*[{"preset": name} for name in presets()], *METHODS])
def test_what_is_printed_configures_the_same_run(tmp_path, wish):
    flags = {} if isinstance(wish, dict) else {"algorithm": {"name": wish}}
    config = resolve(Request(flags=flags, **(wish if isinstance(wish, dict) else {})))
    file = tmp_path / "again.toml"
    file.write_text(document(config.as_dict()), encoding="utf-8")
    assert resolve(Request(file=str(file))) == config


def test_every_setting_says_where_it_is_from(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('[run]\ndtype = "float32"\n[algorithm."sun-*"]\nstep_y = 0.5\ngamma = 7.0\n')
    request = Request(
        flags={"run": {"seed": 3}, "algorithm": {"gamma": 8.0}},
        sets=("algorithm.step_x=0.25",),
        preset="paper/toy",
        file=str(file),
    )
    origins = resolved(request, {"run": {"eval_every": 7, "device": "cpu"}}).origins()
    assert origins["run"]["overlap"] == "program default"
    assert origins["run"]["device"] == "checkpoint"
    assert origins["run"]["eval_every"] == "preset paper/toy"
    assert origins["run"]["dtype"] == f"file {file}"
    assert origins["run"]["seed"] == "flag"
    assert origins["task"]["name"] == "preset paper/toy"
    algorithm = {key: origins["algorithm"][key] for key in ("step_x", "step_y", "gamma", "rho_x")}
    assert algorithm == {
        "step_x": "--set",
        "step_y": f"file {file}",
        "gamma": "flag",
        "rho_x": "program default",
    }
    plain = resolved(Request()).origins()
    assert plain["task"]["name"] == "program default"
    assert plain["task"]["hidden"] == "task default"
    assert plain["algorithm"]["step_x"] == "task default"


def test_every_setting_of_every_method_has_an_origin():
    for name in METHODS:
        found = resolved(Request(flags={"algorithm": {"name": name}}))
        said = {table: set(of) for table, of in found.origins().items()}
        assert said == {table: set(of) for table, of in found.config.as_dict().items()}


def test_what_was_asked_for_makes_the_same_over_the_defaults():
    request = Request(preset="paper/hyper-cleaning", sets=("run.seed=5", "algorithm.step_y=0.5"))
    found = resolved(request)
    assert found.wanted()["algorithm"]["step_y"] == 0.5
    assert resolve(Request(flags=found.wanted())) == found.config


@pytest.fixture
def no_mpi(monkeypatch):
    def refuse():
        raise AssertionError("MPI is not needed")

    monkeypatch.setattr(world, "load_mpi", refuse)


def printed(command, *arguments):
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_printing_needs_no_mpi_and_no_topology(no_mpi):
    arguments = ("--topology", "missing.npz", "--seed", "4", "--task", "quadratic")
    text = printed(run_command, *arguments, "--print-config")
    assert tomllib.loads(text)["run"]["seed"] == 4
    assert '\nfile = "missing.npz"  # flag\n' in text


def test_one_rank_prints_for_all(no_mpi, monkeypatch):
    other = dataclasses.replace(launcher.find_launcher(), rank=1, size=2)
    monkeypatch.setattr("sundsbo_mpi.cli.printing.find_launcher", lambda: other)
    assert printed(run_command, "--print-config") == ""


def test_a_checkpoint_prints_the_settings_that_resuming_would_have(no_mpi, tmp_path):
    config = resolve(Request(flags={"task": {"name": "quadratic"}, "run": {"seed": 6}}))
    about = About(3, [0, 1, 2], config.as_dict(), "weights", "task")
    place = tmp_path / "iteration-000000005"
    place.mkdir()
    Manifest(5, about, "run.h5", [1, 1, 1], ["", "", ""]).write(place / "manifest.json")
    text = printed(resume_command, str(tmp_path), "--iterations", "900", "--print-config")
    said = {line.split(" = ")[0]: line.split("  # ")[-1] for line in text.splitlines()}
    assert (said["seed"], said["iterations"]) == ("checkpoint", "flag")
    assert tomllib.loads(text)["output"]["checkpoint"] == str(tmp_path)
