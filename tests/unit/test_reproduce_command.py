"""The command as a whole: comparison, files, Slurm, tuning; the runs are written, not run."""

import csv
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import fake_runs
import numpy as np
import pytest
from click.testing import CliRunner

from sundsbo_mpi.campaign import running
from sundsbo_mpi.cli.reproduce import command
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.reproduce.paper import experiment

TABLE = ("tab:dcd", "--only", "H=0.5", "--methods", "sun-dsbo-gt,sun-dsbo-se", "--seeds", "3")
DIGITS = ("--set", 'task.dataset="digits"')


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Write run files in place of starting runs; count them."""
    monkeypatch.chdir(tmp_path)
    names = []

    def start(words, log):
        names.append(words)
        fake_runs.write(words[words.index("run") + 1 :])
        return 0

    monkeypatch.setattr(running, "start", start)
    return names


def reproduce(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["sundsbo-mpi", "reproduce", *arguments])
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_list_names_everything(monkeypatch):
    output = reproduce(monkeypatch, "--list")
    for name in ("tab:dcd", "hrvtopo", "thm:speedup", "tablecompar", "meta_M"):
        assert name in output


def test_a_table_beside_the_papers(started, monkeypatch, tmp_path):
    output = reproduce(monkeypatch, *TABLE, *DIGITS)
    assert len(started) == 6
    # Ours is 70 + k/100 + seed^2 + 0.02 with seeds 0, 1, 2: mean 5/3 more, deviation 2.08.
    mean, std = 75 + 0.02 + 5 / 3, np.std([0, 1, 4], ddof=1)
    assert f"{mean:.2f} ± {std:.2f}" in output
    folder = tmp_path / "reproduction" / "tab-dcd"
    with (folder / "table.csv").open() as file:
        rows = {(r["method"], r["iteration"]): r for r in csv.DictReader(file)}
    assert len(rows) == 10
    row = rows["sun-dsbo-gt", "500"]
    assert float(row["ours_mean"]) == pytest.approx(mean)
    assert float(row["ours_std"]) == pytest.approx(std)
    assert int(row["seeds"]) == 3
    assert (float(row["paper_mean"]), float(row["paper_std"])) == (83.36, 0.26)
    assert float(row["deviations"]) == pytest.approx((mean - 83.36) / 0.26)
    page = (folder / "table.md").read_text()
    assert "| H=0.5 | sun-dsbo-gt | ours |" in page
    assert "83.36 ± 0.26" in page
    assert f"{mean - 83.36:+.2f} ({(mean - 83.36) / 0.26:+.1f} std)" in page
    assert 'task.dataset="digits"' in page
    # The agents' own models are one point below, SE is one point below GT for every seed.
    assert f"{mean - 1:.2f} ± {std:.2f}" in page
    assert "| sun-dsbo-gt - sun-dsbo-se | +1 | [+1, +1] | 3 |" in page
    assert (folder / "curves-dcd.png").read_bytes().startswith(b"\x89PNG")
    reproduce(monkeypatch, *TABLE, *DIGITS)
    assert len(started) == 6


def test_short_runs_are_shown_without_the_papers_numbers(started, monkeypatch, tmp_path):
    reproduce(monkeypatch, *TABLE, *DIGITS, "--iterations", "20")
    page = (tmp_path / "reproduction" / "tab-dcd" / "table.md").read_text()
    assert "| condition | method |  | 4 | 8 | 12 | 16 | 20 |" in page
    assert "| paper |" not in page


def test_missing_runs_are_named(started, monkeypatch, tmp_path):
    reproduce(monkeypatch, *TABLE[:-1], "1", *DIGITS)
    output = reproduce(monkeypatch, *TABLE, *DIGITS, "--collect")
    assert len(started) == 2
    assert "not run" in output
    page = (tmp_path / "reproduction" / "tab-dcd" / "table.md").read_text()
    assert "| H=0.5 | sun-dsbo-gt | 1, 2 | not run |" in page


def test_a_figure_of_two_experiments(started, monkeypatch, tmp_path):
    only = ("--only", "H=1", "--methods", "sun-dsbo-gt,dsgda-gt", "--seeds", "1")
    output = reproduce(monkeypatch, "hrht", *only, "--iterations", "10", *DIGITS)
    assert len(started) == 3
    assert (
        "The paper says: SUN-DSBO-GT is fastest"
        in (tmp_path / "reproduction" / "hrht" / "table.md").read_text()
    )
    assert "hrr2" in output


def test_a_dry_run_prints_commands_and_starts_nothing(started, monkeypatch, tmp_path):
    output = reproduce(monkeypatch, *TABLE, *DIGITS, "--dry-run", "--launcher", "run -n {n}")
    lines = output.splitlines()
    assert len(lines) == 7
    assert " topology ring --agents 10 --self-weight 0.5 -o " in lines[0]
    assert lines[1].startswith("run -n 10 ")
    assert started == []
    assert list(tmp_path.iterdir()) == []


def test_what_needs_no_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "sundsbo-mpi list" in reproduce(monkeypatch, "tablecompar")
    reproduce(monkeypatch, "topo", "--out", "pictures")
    found = sorted(path.name for path in (tmp_path / "pictures" / "topo").iterdir())
    assert found == ["exponential.png", "line.png", "ring.png"]


def test_the_slurm_script_is_an_array_of_the_missing_runs(started, monkeypatch, tmp_path):
    monkeypatch.setattr(running, "start", None)
    launcher = ("--launcher", "echo '{n} ranks'")
    out = ("--out", "my runs")
    script = reproduce(monkeypatch, *TABLE, *DIGITS, *out, *launcher, "--submit", "--dry-run")
    assert list(tmp_path.iterdir()) == []
    assert "#SBATCH --array=0-5\n" in script
    assert "#SBATCH --ntasks=10\n" in script
    path = tmp_path / "array.sh"
    path.write_text(script)
    for task, words in ((0, ("10 ranks", "--seed 0", "sun-dsbo-gt")), (5, ("--seed 2",))):
        environment = os.environ | {"SLURM_ARRAY_TASK_ID": str(task)}
        result = subprocess.run(["bash", path], env=environment, capture_output=True, text=True)
        assert result.returncode == 0
        for word in words:
            assert word in result.stdout


@pytest.fixture
def sbatch(monkeypatch, tmp_path):
    """Put an sbatch on PATH that writes down how it was called, and hands out numbers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    calls = tmp_path / "calls"
    program = folder / "sbatch"
    program.write_text(
        f'#!/bin/bash\nprintf "%s|" "$@" >> "{calls}"\necho >> "{calls}"\n'
        f'echo "4$(wc -l < "{calls}");cluster"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return calls


def test_submitting(started, sbatch, monkeypatch, tmp_path):
    output = reproduce(monkeypatch, *TABLE, *DIGITS, "--submit", "--launcher", "srun -n {n}")
    assert "tab:dcd: submitted 6 runs as job 41; job 42 goes on after them" in output
    array, collecting = sbatch.read_text().splitlines()
    script = Path(array.split("|")[1])
    assert script.parent == tmp_path / "reproduction" / "slurm"
    assert '\nsrun -n "$agents" ' in script.read_text()
    assert "--dependency=afterany:41" in collecting
    wrapped = collecting.split("--wrap=")[1]
    assert "reproduce tab:dcd" in wrapped
    assert "--collect" in wrapped
    assert "--submit" not in wrapped
    assert list((tmp_path / "reproduction" / "topologies").iterdir())


def test_without_sbatch(started, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UsageError, match="no sbatch on PATH"):
        reproduce(monkeypatch, *TABLE, *DIGITS, "--submit", "--launcher", "srun -n {n}")


def test_tuning_chooses_by_validation_and_is_used(started, monkeypatch, tmp_path):
    """The written runs are the better the larger step_y: the largest factor must win."""
    short = (*TABLE[:-1], "1", *DIGITS, "--iterations", "10")
    with pytest.raises(UsageError, match="no tuned steps of sun-dsbo-gt"):
        reproduce(monkeypatch, "tab:hrr1", "--methods", "sun-dsbo-gt", "--tuned")
    output = reproduce(monkeypatch, *short, "--tune")
    grid = experiment("dcd").tuning
    assert len(started) == 2 * len(grid.step_x) * len(grid.others)
    assert "validation accuracy" in output
    path = tmp_path / "reproduction" / "tuned" / "hyper-cleaning.toml"
    text = path.read_text()
    assert "#   sundsbo-mpi reproduce tab:dcd" in text
    found = tomllib.loads(text)
    assert found["task"]["name"] == "hyper-cleaning"
    assert found["algorithm"]["sun-dsbo-gt"]["step_y"] == pytest.approx(0.6)
    assert found["algorithm"]["sun-dsbo-gt"]["step_theta"] == pytest.approx(0.3)
    reproduce(monkeypatch, *short, "--tuned")
    assert (tmp_path / "reproduction" / "tab-dcd-tuned" / "table.md").exists()
    used = " ".join(started[-1])
    assert "algorithm.step_y=0.6" in used


def test_tuning_never_looks_at_the_test_data(started, monkeypatch, tmp_path):
    """Test accuracy grows with step_y and validation accuracy falls; the largest step diverges."""

    def start(words, log):
        config = fake_runs.configuration(words[words.index("run") + 1 :])
        step = config.algorithm["step_y"]
        if step == pytest.approx(0.6):
            return 3
        fake_runs.write(words[words.index("run") + 1 :], measure=lambda *_: 50 - step)
        return 0

    monkeypatch.setattr(running, "start", start)
    monkeypatch.setattr(fake_runs, "METRICS", ("validation_accuracy", "a", "b", "test_accuracy"))
    short = (*TABLE[:-1], "1", *DIGITS, "--iterations", "10", "--methods", "sun-dsbo-gt")
    reproduce(monkeypatch, *short, "--tune")
    found = tomllib.loads((tmp_path / "reproduction/tuned/hyper-cleaning.toml").read_text())
    assert found["algorithm"]["sun-dsbo-gt"]["step_y"] == pytest.approx(0.02)
    # Of equal ones, which differ in step_x alone, the first counts.
    assert found["algorithm"]["sun-dsbo-gt"]["step_x"] == pytest.approx(0.03)


def test_an_interruption_is_told(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def start(words, log):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "start", start)
    result = CliRunner().invoke(command, [*TABLE, *DIGITS, "--iterations", "10"])
    assert "finished runs are kept" in result.output
    assert result.exit_code == 1


def test_the_theorems(started, monkeypatch, tmp_path):
    """Written runs whose stationarity is 7 K^-0.6 at every evaluation, and grows with the seed."""

    def start(words, log):
        words = words[words.index("run") + 1 :]
        config = fake_runs.configuration(words)
        value = 7 * config.run.iterations**-0.6 * (1 + config.run.seed)
        consensus = dict.fromkeys(("x", "y", "theta"), value**2 / 3)
        fake_runs.write(words, measure=lambda *_: 1.0, stationarity=value, consensus=consensus)
        return 0

    monkeypatch.setattr(running, "start", start)
    only = [word for K in (512, 1024, 2048) for word in ("--only", f"K={K}")]
    output = reproduce(monkeypatch, "thm:speedup", *only, "--seeds", "2")
    lines = {tuple(line.split("  ")[0:1]): line for line in output.splitlines()}
    for line in lines.values():
        if "stationarity falls with K" in line:
            assert "within the bound" in line
            assert "-0.60 [-0.60, -0.60]" in line
        if "consensus error falls with K" in line:
            assert "-1.20 [-1.20, -1.20]" in line
    page = (tmp_path / "reproduction" / "thm-speedup" / "table.md").read_text()
    mean, std = 7 * 512**-0.6 * 1.5, 7 * 512**-0.6 * np.sqrt(0.5)
    assert f"| K=512 | sun-dsbo-se | 2 | {mean:.4g} ± {std:.4g} |" in page
    assert "stationarity falls with n" not in page
    with pytest.raises(UsageError, match="what varies here"):
        reproduce(monkeypatch, "thm:speedup", "--iterations", "10")
