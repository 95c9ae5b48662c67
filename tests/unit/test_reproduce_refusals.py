"""What ``reproduce`` refuses with a sentence, and what it then leaves as it was."""

import os
import sys
from pathlib import Path

import fake_runs
import pytest
from click.testing import CliRunner

from sundsbo_mpi.campaign import process, running
from sundsbo_mpi.cli.reproduce import command
from sundsbo_mpi.errors import UsageError

ONE = ("tab:dcd", "--only", "H=0.5", "--methods", "sun-dsbo-se", "--seeds", "1")
SHORT = (*ONE, "--iterations", "10", "--set", 'task.dataset="digits"')
FAILING = ("--launcher", f"'{sys.executable}' -c 'raise SystemExit({{n}})'")
SLURM = ("--submit", "--launcher", "srun -n {n}")


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sundsbo-mpi", "reproduce", *SHORT])


@pytest.fixture
def finished(monkeypatch):
    """Write run files in place of starting runs."""

    def start(words, log):
        fake_runs.write(words[words.index("run") + 1 :])
        return 0

    monkeypatch.setattr(running, "start", start)


def reproduce(*arguments):
    CliRunner().invoke(command, arguments, catch_exceptions=False)


def refuse(match, *arguments):
    with pytest.raises(UsageError, match=match):
        reproduce(*arguments)


@pytest.mark.parametrize(
    ("match", "bad"),
    [
        ("nonsense", ("--set", "nonsense")),
        ("algorithm.nope", ("--set", "algorithm.nope=1")),
        ("unknown preset", ("--preset", "nope")),
        ("make other runs", ("--set", "output.file=precious.h5")),
        ("names no method", ("--methods", ",")),
        ("names no method", ("--methods", "")),
        ("has no {n}", ("--launcher", "")),
    ],
)
def test_bad_requests_write_nothing(match, bad):
    refuse(match, *SHORT, *bad)
    assert not Path("reproduction").exists()


@pytest.mark.parametrize("flags", [("--tune",), ("--submit", "--only", "x"), ("--set", "a.b=1")])
@pytest.mark.parametrize("what", ["topo", "--list"])
def test_flags_about_runs_where_there_are_none(what, flags):
    refuse("starts no runs", what, *flags)


def test_without_a_finished_run_the_report_stays(finished, monkeypatch):
    reproduce(*SHORT)
    page = Path("reproduction/tab-dcd/table.md")
    good = page.read_text()
    refuse("no run of tab:dcd is finished", *SHORT, "--iterations", "20", "--collect")
    monkeypatch.setattr(running, "start", process.start)
    refuse(r"said above \(see '.*\.log'\)", *SHORT, "--iterations", "20", *FAILING)
    assert page.read_text() == good


def test_tuning_without_a_finished_trial_writes_no_steps():
    refuse("no trial has finished", *SHORT, "--tune", "--collect")
    assert not Path("reproduction/tuned").exists()


def test_tuning_without_validation_data_writes_no_steps(finished, monkeypatch):
    monkeypatch.setattr(fake_runs, "METRICS", ("test_accuracy", "a", "b", "c"))
    refuse("no trial has finished", *SHORT, "--tune")
    assert not Path("reproduction/tuned").exists()


@pytest.mark.parametrize("damage", [b"algorithm = 3", b"[algorithm", b"\xff\xfe"])
def test_damaged_tuned_steps(finished, damage):
    path = Path("reproduction/tuned/hyper-cleaning.toml")
    path.parent.mkdir(parents=True)
    path.write_bytes(damage)
    for flag in ("--tuned", "--tune"):
        refuse("hyper-cleaning.toml", *SHORT, flag)
    assert path.read_bytes() == damage


def test_a_damaged_topology():
    path = Path("reproduction/topologies/ring_n10_self-weight-0.5.npz")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"damaged")
    refuse("ring_n10_self-weight-0.5.npz", *SHORT)
    assert not Path("reproduction/runs").exists()


def test_places_that_cannot_be_written(finished):
    reproduce(*SHORT)
    for out in ("/dev/null/x", "x" * 300):
        refuse("choose another directory with --out", "topo", "--out", out)
        refuse("choose another directory with --out", *SHORT, "--out", out)
    Path("reproduction/tab-dcd-tuned").write_text("in the way")
    Path("reproduction/tuned").mkdir()
    Path("reproduction/tuned/hyper-cleaning.toml").write_text("[algorithm.sun-dsbo-se]\n")
    refuse("File exists; choose another directory", *SHORT, "--tuned")


def sbatch(body, mode=0o755):
    folder = Path("bin").absolute()
    folder.mkdir()
    program = folder / "sbatch"
    program.write_text(f"#!/bin/bash\n{body}\n")
    program.chmod(mode)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("match", "body"),
    [
        ("sbatch said '', not a job's number", "true"),
        (
            "job 41 has the runs.*sbatch refused the job: too many.*give the same command again",
            '[[ "$*" == *--wrap* ]] && { echo too many >&2; exit 1; }; echo 41',
        ),
    ],
)
def test_what_slurm_has_taken_is_told(monkeypatch, match, body):
    monkeypatch.setenv("PATH", sbatch(body))
    refuse(match, *SHORT, *SLURM)


def test_slurm_that_cannot_be_called(monkeypatch):
    bin_only = sbatch("true", mode=0o644).partition(":")[0]
    monkeypatch.setenv("PATH", bin_only)
    refuse("Permission denied", *SHORT, *SLURM)
    for odd in ('a"b', "a\nb", "a%jb"):
        refuse(
            "the directory of --out .* which schedulers do not take", *SHORT, *SLURM, "--out", odd
        )
    Path("out").mkdir()
    Path("out/slurm").write_text("in the way")
    refuse("choose another directory with --out", *SHORT, *SLURM, "--out", "out")
