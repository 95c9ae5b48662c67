"""``sundsbo-mpi launch``: what it writes, says and refuses."""

import shlex

import click
import numpy as np
import pytest
from click.testing import CliRunner

from sundsbo_mpi.checkpoint import About, Manifest
from sundsbo_mpi.cli import sundsbo_mpi
from sundsbo_mpi.cli.launch import command
from sundsbo_mpi.cli.run import request_of
from sundsbo_mpi.config import methods
from sundsbo_mpi.config.resolving import resolve
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.topology import Reading, read_weights

MIRRORED = np.array([[0.1, 0.9], [0.9, 0.1]])
"""Weights whose smallest eigenvalue is -0.8."""


@pytest.fixture
def launch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("four.npy", np.full((4, 4), 1 / 4))
    np.save("six.npy", np.full((6, 6), 1 / 6))

    def launch(*words):
        methods.configured_weights.cache_clear()  # by a process that ends
        result = CliRunner().invoke(command, list(map(str, words)), standalone_mode=False)
        if isinstance(result.exception, click.ClickException):
            raise UsageError(result.exception.format_message())
        if result.exception:
            raise result.exception
        return result.output

    return launch


@pytest.mark.parametrize(
    ("kind", "file", "submit"),
    [
        ("slurm", "my.sbatch", "sbatch my.sbatch"),
        ("pbs", "my.pbs", "qsub my.pbs"),
        ("flux", "my.flux", "flux batch my.flux"),
    ],
)
def test_it_writes_a_script_and_says_how_it_is_submitted(launch, tmp_path, kind, file, submit):
    shared = ("--topology", "four.npy", "--time", "1:30:00", "--name", "my")
    said = launch(kind, *shared, "--", "--task", "toy", "--set", "algorithm.step_x=0.1")
    assert said.splitlines()[0] == f"wrote {file}: 4 agents, my.h5, checkpoints in my.saved"
    assert said.splitlines()[1] == f"submit with: {submit}"
    lines = (tmp_path / file).read_text().splitlines()
    assert "agents=4" in lines
    settings = "--topology four.npy --task toy --set algorithm.step_x=0.1"
    assert f"settings=({settings})" in lines
    assert any(str(tmp_path) in line and ("cd " in line or "--chdir" in line) for line in lines)
    with pytest.raises(UsageError, match=rf"'{file}' exists already"):
        launch(kind, *shared)
    launch(kind, *shared, "--overwrite", "--", "--iterations", 7)
    lines = (tmp_path / file).read_text().splitlines()
    assert "settings=(--topology four.npy --iterations 7)" in lines
    assert "resuming=(--iterations 7)" in lines


def test_an_array_has_every_combination_and_may_vary_the_network(launch, tmp_path):
    said = launch(
        *("slurm", "--array", "run.seed=[0, 1]", "-o", "many"),
        *("--array", 'topology.file=["four.npy", "six.npy"]', "--", "--task", "quadratic"),
    )
    assert "wrote many: 6 agents, 4 runs, sundsbo-0.h5 to sundsbo-3.h5" in said
    text = (tmp_path / "many").read_text()
    assert [text.count(f"    agents={n}\n") for n in (4, 6)] == [2, 2]
    assert "--set run.seed=1 --set 'topology.file=\"six.npy\"'" in text


def test_an_array_of_one_run_is_none(launch, tmp_path):
    launch("slurm", "--topology", "four.npy", "--array", "run.seed=[3]")
    text = (tmp_path / "sundsbo.sbatch").read_text()
    assert "--array" not in text
    assert '--output="sundsbo-%j.log"' in text
    assert "output=sundsbo.h5\n" in text


@pytest.mark.parametrize(
    ("text", "line"),
    [("90", "01:30:00"), ("0:02:03", "00:02:03"), ("2-01:00:00", "49:00:00")],
)
def test_times_are_minutes_or_hours_minutes_seconds(launch, tmp_path, text, line):
    launch("slurm", "--topology", "four.npy", "--notice", 1, "--time", text)
    assert f"#SBATCH --time={line}\n" in (tmp_path / "sundsbo.sbatch").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--time", "1:2"), "--time.*1:2: expected H:MM:SS"),
        (("--agents", "5"), "has 4 agents, but --agents is 5"),
        (("--mpi", "pmxi"), "did you mean 'pmix'"),
        (("--", "--iteration", "5"), "--iteration"),
        (("--", "--task", "qadratic"), "did you mean 'quadratic'"),
        (("--", "--set", "algorithm.stepx=1"), "did you mean 'algorithm.step_x'"),
        (("--", "--output", "x.h5"), "output.file is the script's own"),
        (("--", "--trace", "x.json"), "output.trace is the script's own"),
        (("-o", "a\nb"), "schedulers do not take as it stands"),
        (("--", "--set", "output.checkpoint=x"), "output.checkpoint is the script's own"),
        (("--array", "run.seed=[0, 1, 0]"), "gives run.seed a value twice"),
        (("--account", "a b"), "without blanks"),
        (("--", "--print-config"), "--print-config starts no run"),
        (("--array", "run.sed=[1]"), "did you mean 'run.seed'"),
        (("--name", "a/b"), "--name 'a/b'"),
    ],
)
def test_what_would_fail_in_the_queue_is_refused_before(launch, tmp_path, words, said):
    with pytest.raises(UsageError, match=said):
        launch("slurm", "--topology", "four.npy", *words)
    assert not list(tmp_path.glob("*.sbatch"))


def test_a_network_is_needed_and_an_old_run_file_stays(launch, tmp_path):
    with pytest.raises(UsageError, match="no topology"):
        launch("slurm")
    (tmp_path / "sundsbo.h5").touch()
    with pytest.raises(UsageError, match=r"'sundsbo.h5' is there already"):
        launch("slurm", "--topology", "four.npy", "--overwrite")


def keep_a_checkpoint(folder, *flags):
    """Write what the checkpoint of such a run over the four agents says of it."""
    config = resolve(request_of(("--topology", "four.npy", *flags)))
    digest = read_weights("four.npy", Reading()).weights.sha256
    about = About(4, [0, 1, 2, 3], config.as_dict(), digest, "")
    checkpoint = folder / "sundsbo.saved" / "iteration-000000009"
    checkpoint.mkdir(parents=True)
    Manifest(9, about, "sundsbo.h5", [1] * 4, [""] * 4).write(checkpoint / "manifest.json")


def test_a_script_goes_on_with_its_own_run_alone(launch, tmp_path):
    keep_a_checkpoint(tmp_path, "--task", "quadratic", "--iterations", "20")
    (tmp_path / "sundsbo.h5").touch()
    shared = ("slurm", "--topology", "four.npy", "--overwrite", "--", "--task", "quadratic")
    launch(*shared, "--iterations", 30)
    for words in (("--algorithm", "d-soba"), ("--seed", 1), ("--iterations", 5)):
        with pytest.raises(UsageError, match=r"'sundsbo.saved' has checkpoints already"):
            launch(*shared, *words)
    np.save("four.npy", np.eye(4) / 2 + 1 / 8)
    with pytest.raises(UsageError, match="other weights than before"):
        launch(*shared)


def test_schedulers_are_named_and_every_help_has_an_example(launch):
    with pytest.raises(UsageError, match="did you mean 'slurm'"):
        launch("slrum")
    assert "launch" in CliRunner().invoke(sundsbo_mpi, ["--help"]).output
    for words in ((), ("slurm",), ("pbs",), ("flux",)):
        shown = launch(*words, "--help")
        examples = [line for line in shown.splitlines() if "sundsbo-mpi launch " in line]
        assert any(shlex.split(line)[:2] == ["sundsbo-mpi", "launch"] for line in examples)


def test_a_method_that_cannot_mix_with_the_weights_is_refused_before_it_is_queued(launch, tmp_path):
    np.save("pair.npy", MIRRORED)
    words = ("slurm", "--topology", "pair.npy", "--", "--algorithm", "sun-dsbo-ed")
    with pytest.raises(UsageError, match="smallest eigenvalue is above"):
        launch(*words)
    assert not list(tmp_path.glob("*.sbatch"))
    launch(*words, "--set", "algorithm.lazy=true")


def test_flags_of_the_run_belong_behind_two_dashes(launch):
    with pytest.raises(UsageError, match="--iterations is a flag of 'sundsbo-mpi run'"):
        launch("slurm", "--topology", "four.npy", "--iterations", 5)
    with pytest.raises(UsageError, match="No such option '--iterashuns'"):
        launch("slurm", "--topology", "four.npy", "--iterashuns", 5)
