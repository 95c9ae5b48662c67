"""Every command's help has examples that work, and wrong words are answered with right ones."""

import os
import re
import subprocess
import sys

import click
import fenced
import pytest
from click.shell_completion import ShellComplete
from commands import every_command, options, parsed

from sundsbo_mpi import cli
from sundsbo_mpi.cli import COMMANDS, sundsbo_mpi
from sundsbo_mpi.errors import UsageError

ALL = [pytest.param(w, c, id=" ".join(w) or "sundsbo-mpi") for w, c in every_command()]
LEAVES = [case for case in ALL if not isinstance(case.values[1], click.Group)]
GROUPS = [case for case in ALL if isinstance(case.values[1], click.Group)]


def refusal(words, monkeypatch):
    """Return the one sentence with which a command line is refused."""
    with pytest.raises((click.ClickException, UsageError)) as caught:
        parsed(words, monkeypatch)
    error = caught.value
    return error.format_message() if isinstance(error, click.ClickException) else str(error)


STARTS = ("sundsbo-mpi", "mpirun", "srun", "launch/local.sh")


def examples(words, command):
    """Return the words of every example in a command's help, which must be about this command."""
    shown = re.sub(r"\\\n\s*", " ", command.get_help(click.Context(command)).partition("\n")[2])
    lines = [line.strip() for line in shown.splitlines()]
    script = "\n".join(line.partition("   ")[0] for line in lines if line.startswith(STARTS))
    return [found for found in fenced.words_of(script) if words in (found[: len(words)], ["run"])]


@pytest.mark.parametrize(("words", "command"), ALL)
def test_help_has_an_example_that_parses(words, command, monkeypatch):
    found = examples(words, command)
    assert found
    for example in found:
        parsed(example, monkeypatch)


@pytest.mark.parametrize(("words", "command"), ALL)
def test_a_misspelt_flag_is_answered_with_the_right_one(words, command, monkeypatch):
    for name in options(command):
        if name != "--help" and not isinstance(command, click.Group):
            assert name in refusal([*words, f"{name}x"], monkeypatch)


def test_a_misspelt_flag_without_a_command_is_one_of_run(monkeypatch):
    assert "'--topology'" in refusal(["--topolgy", "ring.npz"], monkeypatch)


@pytest.mark.parametrize(("words", "command"), GROUPS)
def test_a_misspelt_command_is_answered_with_the_right_one(words, command, monkeypatch):
    for name in command.list_commands(click.Context(command)):
        assert f"did you mean '{name}'?" in refusal([*words, f"{name}x"], monkeypatch)


@pytest.mark.parametrize(("words", "command"), LEAVES)
def test_what_is_missing_is_named(words, command, monkeypatch):
    ctx = click.Context(command)
    needed = [
        p.make_metavar(ctx) if isinstance(p, click.Argument) else p.opts[-1]
        for p in command.params
        if p.required
    ]
    if needed:
        said = refusal(words, monkeypatch)
        assert any(name in said for name in needed)


@pytest.mark.parametrize(("words", "command"), LEAVES)
def test_a_flag_without_its_value_is_named(words, command, monkeypatch):
    for name in valued(command):
        assert name in refusal([*words, name], monkeypatch)


@pytest.mark.parametrize(("words", "command"), LEAVES)
def test_a_value_of_the_wrong_kind_is_told_with_its_flag(words, command, monkeypatch):
    for name, kind in valued(command).items():
        if not takes(kind, "wrong"):
            said = refusal([*words, name, "wrong"], monkeypatch)
            assert name in said
            assert "wrong" in said


@pytest.mark.parametrize(("words", "command"), LEAVES)
def test_a_word_too_many_is_named(words, command, monkeypatch):
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    if all(p.nargs == 1 for p in arguments):
        needed = [
            w
            for p in command.params
            if p.required
            for w in ([p.opts[-1], "1"] if valued_one(p) else [])
        ]
        said = refusal([*words, *needed, *("given" for _ in arguments), "toomany"], monkeypatch)
        assert "toomany" in said


def valued_one(param):
    return isinstance(param, click.Option)


def valued(command):
    """Map the last name of every option that takes a value to the value's type."""
    return {
        p.opts[-1]: p.type for p in command.params if isinstance(p, click.Option) and not p.is_flag
    }


def takes(kind, value):
    try:
        kind.convert(value, None, None)
    except click.ClickException:
        return False
    return True


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--iterations", "many"], "'--iterations'"),
        (["topology", "rng"], "'ring'"),
        (["show"], "'RUN.h5'"),
        (["plot", "run.h5", "--metrik", "loss"], "'--metric'"),
    ],
)
def test_it_is_said_in_one_line_with_status_2(words, named, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sundsbo-mpi", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sundsbo-mpi: ")
    assert err.count("\n") == 1
    assert named in err


def completions(args, incomplete):
    """Return what the shell is offered after these words."""
    shell = ShellComplete(sundsbo_mpi, {}, "sundsbo-mpi", "_SUNDSBO_MPI_COMPLETE")
    return {
        item.value if item.type == "plain" else item.type
        for item in shell.get_completions(args, incomplete)
    }


def test_commands_and_their_flags_complete():
    assert completions([], "") == set(COMMANDS)
    assert completions([], "to") == {"topology"}
    assert {"--iterations", "--help"} <= completions([], "--")
    assert completions([], "--alg") == {"--algorithm"}
    assert completions(["--topology", "ring.npz"], "--iter") == {"--iterations"}
    assert completions(["run"], "--iter") == {"--iterations"}
    assert completions(["topology"], "ri") == {"ring"}
    assert completions(["topology", "ring"], "--ag") == {"--agents"}
    assert completions(["data"], "f") == {"fetch"}
    assert completions(["show"], "") == {"file"}
    assert completions(["--config"], "") == {"file"}


@pytest.mark.parametrize("args", [["nonsense"], ["topology", "nonsense"], ["data", "nonsense"]])
def test_completing_after_an_unknown_command_is_silent(args):
    known = {words[-1] for words, _ in every_command() if words}
    assert completions(args, "") <= known


def test_files_and_folders_complete():
    """A flag whose value is shown as a file or folder is completed as one."""
    for words, command in every_command():
        for param in command.params:
            shown = param.metavar or ""
            if re.match(r"FILE(?!.*:)|DIR|RUN\.h5|BENCH\.h5|SWEEP", shown):
                assert isinstance(param.type, click.Path), f"{words}: {param.opts}"


LOOK = """
import sys
from sundsbo_mpi.cli import main
sys.argv[0] = "sundsbo-mpi"
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("loaded:", *sorted({"mpi4py", "torch", "numpy", "rich", "h5py"} & set(sys.modules)))
"""


def run(*words, **environment):
    """Run the program in a process of its own; return what it printed and what it loaded."""
    result = subprocess.run(
        [sys.executable, "-c", LOOK, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    shown, _, loaded = result.stdout.rpartition("loaded:")
    return shown, loaded.split()


def test_help_loads_nothing_heavy():
    shown, loaded = run("--help")
    assert all(name in shown for name in COMMANDS)
    assert loaded == []


ALL_HELP = """
import click, sys
sys.path.insert(0, {folder!r})
from commands import every_command
for words, command in every_command():
    command.get_help(click.Context(command))
assert not {{"mpi4py", "torch"}} & set(sys.modules), "loaded for help alone"
"""


def test_the_help_of_no_command_loads_mpi_or_torch():
    code = ALL_HELP.format(folder=os.path.dirname(__file__))
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr


def test_the_shell_gets_the_commands_without_loading_them():
    asked = {"COMP_WORDS": "sundsbo-mpi ", "COMP_CWORD": "1"}
    shown, loaded = run(_SUNDSBO_MPI_COMPLETE="bash_complete", **asked)
    assert "plain,topology" in shown.split()
    assert loaded == []
