"""A sweep as a whole; the runs are written, not run."""

import csv
import json
import os
import re
import shlex
import sys
import tomllib
from pathlib import Path

import fake_runs
import numpy as np
import pytest
from click.testing import CliRunner

from sundsbo_mpi.batch import program
from sundsbo_mpi.campaign import naming, process, running
from sundsbo_mpi.checkpoint import About, Manifest
from sundsbo_mpi.cli.sweep import command
from sundsbo_mpi.config import methods
from sundsbo_mpi.config.resolving import Request, resolve
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import read_run
from sundsbo_mpi.sweep.reading import read_sweep
from sundsbo_mpi.topology import BUILDERS, write_weights

SWEEP = """
[sweep]
{more}

[sweep.over]
algorithm.step_y = [0.01, 0.1, 1.0]
algorithm.gamma = [1.0, 10.0]

[run]
iterations = 20
eval_every = 10
seed = 5

[task]
name = "quadratic"

[topology]
file = "ring.npz"
"""

NARROW = SWEEP.replace("[1.0, 10.0]", "[10.0]")
"""Three settings in place of six."""


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_weights(BUILDERS["ring"](5), "ring.npz")


def peaked(config, _k):
    """Best at step_y = 0.3 and gamma = 10, in logarithms; every seed adds its own number."""
    step, gamma = config.algorithm["step_y"], config.algorithm["gamma"]
    miss = abs(np.log10(step / 0.3)) + abs(np.log10(gamma / 10))
    return 80 - miss + config.run.seed / 100


@pytest.fixture
def started(monkeypatch):
    """Write run files in place of starting runs; return the words of all that were started."""
    calls = []

    def start(words, log):
        calls.append(words)
        fake_runs.write(words[words.index("run") + 1 :], measure=peaked)
        return 0

    monkeypatch.setattr(running, "start", start)
    return calls


def sweep(*arguments, more="", text=SWEEP):
    Path("steps.toml").write_text(text.format(more=more))
    words = ["steps.toml", *arguments]
    sys.argv[1:] = ["sweep", *words]
    for kept in (methods.configured_weights, naming._source):  # by a process that ends
        kept.cache_clear()
    result = CliRunner().invoke(command, words, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def refuse(match, *arguments, more="", text=SWEEP):
    with pytest.raises(UsageError, match=match):
        sweep(*arguments, more=more, text=text)


def to_start(*arguments, **changes):
    """Return the words of the runs that would be started."""
    return [shlex.split(line) for line in sweep(*arguments, "--dry-run", **changes).splitlines()]


def files(commands):
    return {words[words.index("--output") + 1] for words in commands}


def rows(folder="steps"):
    with (Path(folder) / "table.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(autouse=True)
def _own_words(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["sundsbo-mpi"])


def test_all_settings_are_ranked_by_the_mean_over_the_seeds(started):
    text = SWEEP.replace("[0.01, 0.1, 1.0]", "[0.01, 0.1]")
    output = sweep(more="seeds = 3", text=text)
    assert len(started) == 12
    found = rows()
    assert [int(row["rank"]) for row in found] == [1, 2, 3, 4]
    pairs = [(float(row["algorithm.step_y"]), float(row["algorithm.gamma"])) for row in found]
    assert (pairs[0], pairs[-1]) == ((0.1, 10.0), (0.01, 1.0))
    # The written validation accuracy is one above the measure.
    best = 80 - np.log10(3) + 0.06 + 1
    assert float(found[0]["mean"]) == pytest.approx(best)
    assert float(found[0]["std"]) == pytest.approx(0.01)
    assert found[0]["seeds"] == "3"
    page = Path("steps/table.md").read_text()
    assert f"{best:.4g} ± 0.01" in page
    assert "`sweep steps.toml`" in page
    assert "the best algorithm.gamma is the last of its values" in output


def test_the_agents_own_models_stand_beside(started, monkeypatch):
    names = ("validation_accuracy", "validation_accuracy_local", "a", "b")
    monkeypatch.setattr(fake_runs, "METRICS", names)
    output = sweep(text=NARROW)  # of the written runs, one below
    found = rows()[0]
    assert float(found["local_mean"]) == pytest.approx(float(found["mean"]) - 1)
    assert "the best algorithm.step_y" not in output


def test_the_best_is_a_configuration(started):
    sweep(more='preset = "paper/toy"', text=NARROW)
    text = Path("steps/best.toml").read_text()
    assert text.startswith("# validation_accuracy ")
    found = tomllib.loads(text)
    assert found["algorithm"]["step_y"] == 0.1
    assert found["topology"] == {"file": "ring.npz"}
    assert "seed" not in found["run"]
    assert "output" not in found
    config = resolve(Request(file="steps/best.toml", flags={"run": {"seed": 5}}))
    words = next(w for w in started if "algorithm.step_y=0.1" in w)
    ran = fake_runs.configuration(words[words.index("run") + 1 :])
    assert ran.algorithm == config.algorithm
    assert (ran.task, ran.run, ran.topology) == (config.task, config.run, config.topology)


def test_the_best_can_be_read_whatever_the_command_was(started):
    sweep("--out", "odd\n'[x]\t\"", text=NARROW)
    text = (Path("odd\n'[x]\t\"") / "best.toml").read_text()
    assert tomllib.loads(text)["algorithm"]["step_y"] == 0.1
    assert text.splitlines()[2].startswith("#   sundsbo-mpi sweep steps.toml --out 'odd\\n")


def test_each_seed_is_a_run_of_its_own_beginning_with_the_first_of_the_file():
    planned = to_start(more="seeds = 2")
    seeds = [fake_runs.configuration(words[words.index("run") + 1 :]).run.seed for words in planned]
    assert seeds == [5] * 6 + [6] * 6
    assert len(files(planned)) == 12
    assert all(words[1:3] == ["-n", "5"] for words in planned)
    assert not Path("steps").exists()


def test_finished_runs_are_used_again(started):
    sweep(text=NARROW)
    before = Path("steps/table.csv").read_text()
    sweep(text=NARROW)
    assert len(started) == 3
    assert Path("steps/table.csv").read_text() == before
    assert len(to_start()) == 3
    assert len(to_start(text=NARROW, more="seeds = 2")) == 3
    assert len(to_start("--set", "algorithm.step_x=0.5", text=NARROW)) == 3


def test_another_topology_under_the_same_name_makes_other_runs():
    before = files(to_start())
    assert files(to_start()) == before
    write_weights(BUILDERS["complete"](5), "ring.npz")
    assert not files(to_start()) & before


def test_another_task_file_under_the_same_name_makes_other_runs():
    source = (
        "class Mine:\n"
        "    def __init__(self, *, agent, agents, seed): ...\n"
        "    def start(self): ...\n    def sample(self, k, draw=0): ...\n"
        "    def upper(self, x, y, batch): ...\n    def lower(self, x, y, batch): ...\n"
        "    def report(self, x, y): ...\n"
    )
    text = SWEEP.replace('"quadratic"', '"mine.py:Mine"')
    Path("mine.py").write_text(source)
    before = files(to_start(text=text))
    assert all(Path(name).name.startswith("Mine_sun-dsbo-gt_seed5_") for name in before)
    Path("mine.py").write_text(f"{source}# mended\n")
    assert not files(to_start(text=text)) & before


def test_a_finer_stage_lies_around_the_best(started):
    output = sweep(more="finer = 1")
    found = rows()
    fine = [row for row in found if row["stage"] == "2"]
    # Around 0.1 among 0.01, 0.1, 1: 0.0316 and 0.316; around 10 with 1: 3.162; 0.1, 10 is known.
    steps = {float(row["algorithm.step_y"]) for row in fine}
    gammas = {float(row["algorithm.gamma"]) for row in fine}
    assert (steps, gammas) == ({0.03162, 0.1, 0.3162}, {3.162, 10.0})
    assert len(fine) == 5
    assert len(started) == 6 + 5
    assert (found[0]["algorithm.step_y"], found[0]["stage"]) == ("0.3162", "2")
    assert "the best algorithm.step_y" not in output
    sweep(more="finer = 1")
    assert len(started) == 11


def test_every_further_stage_is_finer_and_comes_closer(started):
    more = "finer = 2\nrefine = ['algorithm.step_y']"
    sweep(more=more, text=SWEEP.replace("[0.01, 0.1, 1.0]", "[0.01, 1.0]"))
    found = rows()
    assert {row["algorithm.gamma"] for row in found if row["stage"] != "1"} == {"10.0"}
    steps = {k: {r["algorithm.step_y"] for r in found if r["stage"] == k} for k in ("2", "3")}
    # Of 0.01 and 1 the latter is best, then 0.1 between them, hence 0.0316 and 0.316.
    assert steps == {"2": {"0.1"}, "3": {"0.03162", "0.3162"}}
    assert found[0]["algorithm.step_y"] == "0.3162"


def test_random_settings_are_the_same_every_time(started):
    text = SWEEP.replace("[0.01, 0.1, 1.0]", "{{low = 0.01, high = 1.0}}")
    more = "search = 'random'\nsamples = 4\nfiner = 1"
    sweep(more=more, text=text)
    first = rows()
    count = len(started)
    assert count == 8
    sweep(more=more, text=text)
    assert (rows(), len(started)) == (first, count)
    best = next(row for row in first if row["stage"] == "1")
    fine = [float(row["algorithm.step_y"]) for row in first if row["stage"] == "2"]
    half = np.abs(np.log10(fine) - np.log10(float(best["algorithm.step_y"])))
    assert half.max() <= 0.5 + 1e-3
    assert len(to_start(more=f"{more}\nrandom_seed = 1", text=text)) == 4


def test_the_choice_never_looks_at_the_test_data(started, monkeypatch):
    """Test accuracy is best where the validation accuracy is worst."""
    monkeypatch.setattr(fake_runs, "METRICS", ("a", "validation_accuracy", "test_accuracy", "b"))

    def start(words, log):
        words = words[words.index("run") + 1 :]
        fake_runs.write(words, measure=lambda config, k: -config.algorithm["step_y"])
        return 0

    monkeypatch.setattr(running, "start", start)
    sweep(text=NARROW)
    assert rows()[0]["algorithm.step_y"] == "0.01"


@pytest.mark.parametrize("metric", ["test_accuracy", "test_loss_local", "loss/test", "Test-loss"])
def test_metrics_on_test_data_are_refused(started, metric):
    refuse(f"sweep.metric is '{metric}', which is measured on test data", more=f"metric='{metric}'")
    assert started == []


def test_less_may_be_better(started):
    sweep(more="metric = 'loss'", text=NARROW)  # of the written runs, one over the accuracy
    assert rows()[0]["algorithm.step_y"] == "0.1"
    sweep(more="metric = 'loss'\ngoal = 'max'", text=NARROW)
    assert rows()[0]["algorithm.step_y"] == "0.01"


def test_a_metric_that_is_not_measured_is_refused_after_one_run(started):
    refuse(
        r"unknown sweep\.metric 'valid_accuracy': did you mean 'validation_accuracy'",
        more="metric = 'valid_accuracy'",
    )
    assert len(started) == 1
    with pytest.raises(UsageError) as error:
        sweep(more="metric = 'valid_accuracy'")
    assert "test_accuracy" not in str(error.value)
    refuse(r"unknown sweep\.metric", "--collect", more="metric = 'valid_accuracy'")


def test_runs_that_diverge_or_fail_do_not_count_and_are_not_tried_again(started, monkeypatch):
    def start(words, log):
        started.append(words)
        own = words[words.index("run") + 1 :]
        config = fake_runs.configuration(own)
        if config.algorithm["step_y"] == 0.1:
            log.write_text("sundsbo-mpi: agent 3: y is not finite in iteration 7\n")
            fake_runs.write(own, status="failed")
            return 3
        if config.algorithm["gamma"] == 1.0:
            fake_runs.write(own, measure=lambda *_: np.nan)
            return 0
        fake_runs.write(own, measure=peaked)
        return 0

    monkeypatch.setattr(running, "start", start)
    output = sweep()
    found = rows()
    assert [row["rank"] for row in found] == ["1", "2", "", "", "", ""]
    assert found[0]["algorithm.step_y"] == "1.0"
    said = {(row["algorithm.step_y"], row["algorithm.gamma"]): row["trouble"] for row in found}
    assert said["0.1", "10.0"] == (
        "1 of 1 runs lacking, failed: agent 3: y is not finite in iteration 7"
    )
    assert said["1.0", "1.0"] == "validation_accuracy is not finite"
    assert "agent 3: y is not finite" in output
    sweep()
    assert len(started) == 6


def test_settings_that_are_refused_do_not_count(started):
    sweep(text=SWEEP.replace("[0.01, 0.1, 1.0]", "[0.01, -1.0]").replace("[1.0, 10.0]", "[1.0]"))
    bad = rows()[1]
    assert (bad["algorithm.step_y"], bad["rank"]) == ("-1.0", "")
    assert "step_y" in bad["trouble"]
    assert len(started) == 1


def interrupt(words):
    """Leave what an interrupted run leaves: an unfinished run file and a checkpoint."""
    own = words[words.index("run") + 1 :]
    fake_runs.write(own, status="interrupted")
    config = fake_runs.configuration(own)
    about = About(5, list(range(5)), json.loads(json.dumps(config.as_dict())), "weights", "task")
    place = Path(config.output.checkpoint) / "iteration-000000010"
    place.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(10, about, config.output.file, [1] * 5, [""] * 5)
    (place / "manifest.json").unlink(missing_ok=True)
    manifest.write(place / "manifest.json")
    return own


def test_interrupted_runs_go_on_from_their_checkpoints(started, monkeypatch):
    own = {}

    def start(words, log):
        started.append(words)
        if "resume" not in words:
            folder = words[words.index("--checkpoint") + 1]
            own[folder] = interrupt(words)
            return 85
        fake_runs.write(own[words[words.index("resume") + 1]], measure=peaked)
        return 0

    monkeypatch.setattr(running, "start", start)
    refuse("no setting has all its runs", text=NARROW)
    assert not Path("steps/best.toml").exists()
    sweep(text=NARROW)
    assert [words[3 + len(program())] for words in started] == ["run"] * 3 + ["resume"] * 3
    assert rows()[0]["algorithm.step_y"] == "0.1"
    assert list(Path("steps/checkpoints").iterdir()) == []
    assert list(Path("steps/runs").glob("*.log")) == []


def test_a_checkpoint_that_is_refused_gives_way_to_a_new_beginning(started, monkeypatch):
    def start(words, log):
        started.append(words)
        if len(started) <= 3:
            interrupt(words)
            return 85
        if "resume" in words:
            return 2
        fake_runs.write(words[words.index("run") + 1 :], measure=peaked)
        return 0

    monkeypatch.setattr(running, "start", start)
    refuse("no setting has all its runs", text=NARROW)
    sweep(text=NARROW)
    assert [words[3 + len(program())] for words in started[3:]] == ["resume", "run"] * 3


def test_a_checkpoint_of_another_run_file_is_not_gone_on_with(started, monkeypatch):
    monkeypatch.setattr(running, "start", lambda words, log: interrupt(words) and 85)
    refuse("no setting has all its runs", text=NARROW)
    Path("steps").rename("moved")
    assert {words[3 + len(program())] for words in to_start("--out", "moved", text=NARROW)} == {
        "run"
    }


def test_a_dry_run_starts_and_writes_nothing(started):
    output = sweep("--dry-run", "--launcher", "launch -n {n}", more="seeds = 2")
    assert len(output.splitlines()) == 12
    assert output.startswith("launch -n 5 ")
    assert started == []
    assert not Path("steps").exists()


def test_collecting_starts_nothing(started):
    refuse("no setting has all its runs.*not run", "--collect", text=NARROW)
    sweep(text=NARROW)
    refuse("1 of 2 runs lacking, not run", "--collect", more="seeds = 2", text=NARROW)
    sweep("--collect")
    assert [row["rank"] for row in rows()] == ["1", "2", "3", "", "", ""]
    assert len(started) == 3


@pytest.fixture
def sbatch(monkeypatch, tmp_path):
    """Put an sbatch on PATH that writes down how it was called, and hands out numbers."""
    folder, calls = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    program = folder / "sbatch"
    program.write_text(
        f'#!/bin/bash\nprintf "%s|" "$@" >> "{calls}"\necho >> "{calls}"\n'
        f'echo "4$(wc -l < "{calls}")"\n'
    )
    program.chmod(0o755)
    (folder / "squeue").write_text("#!/bin/bash\n")  # an empty queue
    (folder / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return calls


def test_slurm_does_stage_after_stage(started, sbatch):
    more, srun = "finer = 1", ("--submit", "--launcher", "srun -n {n}")
    output = sweep(*srun, more=more, text=NARROW)
    assert "stage 1: submitted 3 runs as job 41; job 42 goes on after them" in output
    array, following = sbatch.read_text().splitlines()
    script = Path(array.split("|")[1]).read_text()
    assert "#SBATCH --array=0-2\n" in script
    assert "#SBATCH --job-name=sundsbo-sweep\n" in script
    assert script.count("agents=5\n") == 3
    assert '\nsrun -n "$agents" ' in script
    assert "--dependency=afterany:41" in following
    assert "sweep steps.toml --submit --launcher 'srun -n {n}' --after 1" in following
    # What the following job finds: no run of the first stage, of which none comes any more.
    refuse("no setting has all its runs", *srun, "--after", "1", more=more, text=NARROW)
    sweep(text=NARROW)  # as the array's tasks would
    assert "stage 2: submitted 2 runs as job 43" in sweep(
        *srun, "--after", "1", more=more, text=NARROW
    )
    assert "srun -n {n}' --after 2" in sbatch.read_text().splitlines()[-1]
    sweep(*srun, "--after", "1", "--after", "2", more=more, text=NARROW)
    assert len(sbatch.read_text().splitlines()) == 4
    assert Path("steps/best.toml").exists()


def test_tables_for_methods_are_for_those_alone(started):
    names = 'algorithm.name = ["sun-dsbo-gt", "sun-dsbo-ed"]'
    tables = '[algorithm]\nmu0 = 0.5\n[algorithm."*-gt"]\nmu0 = 0.25\n'
    sweep(text=NARROW.replace("algorithm.gamma = [10.0]", names) + tables)
    runs = [read_run(path) for path in Path("steps/runs").glob("*.h5")]
    assert len(runs) == 6
    for run in runs:
        algorithm = run.config["algorithm"]
        assert algorithm["mu0"] == {"sun-dsbo-gt": 0.25, "sun-dsbo-ed": 0.5}[algorithm["name"]]
    odd = '[algorithm."sun-*"]\nstep_q = 0.25\n'
    refuse(r"unknown setting of \[algorithm\.\"sun-\*\"\]", text=NARROW + odd)


def test_a_method_that_cannot_mix_with_the_weights_is_not_tried(started):
    np.savetxt("pair.txt", [[0.1, 0.9], [0.9, 0.1]])
    pair = NARROW.replace("ring.npz", "pair.txt")
    refuse(
        "sun-dsbo-ed needs weights.*algorithm.lazy",
        "--set",
        "algorithm.name=sun-dsbo-ed",
        text=pair,
    )
    assert started == []
    sweep("--set", "algorithm.name=sun-dsbo-ed", "--set", "algorithm.lazy=true", text=pair)


def test_runs_that_slurm_has_are_not_started_again(started, sbatch, monkeypatch):
    """Neither there nor here, by anybody but the job that goes on after them."""
    srun = ("--submit", "--launcher", "srun -n {n}")
    sweep(*srun, text=NARROW)
    queue = sbatch.parent / "bin" / "squeue"
    queue.write_text("#!/bin/bash\necho 7\necho 41\necho 42\n")
    queue.chmod(0o755)
    refuse("job 41 with runs of this directory is queued.*'scancel 41'", *srun, text=NARROW)
    refuse("job 41 with runs of this directory is queued", text=NARROW)
    sweep("--dry-run", text=NARROW)
    queue.write_text("#!/bin/bash\necho 42\n")
    refuse("job 42 with runs", text=NARROW)
    assert len(sbatch.read_text().splitlines()) == 2
    queue.write_text("#!/bin/bash\necho no controller >&2\nexit 1\n")
    refuse("squeue does not say whether .* queued: no controller", text=NARROW)
    queue.write_text("#!/bin/bash\necho 42\n")
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    sweep(text=NARROW)
    assert len(started) == 3


def test_what_another_command_is_doing_is_not_submitted(started, sbatch):
    Path("steps/runs").mkdir(parents=True)
    with process.alone(Path("steps/runs")):
        refuse("another command is starting runs", "--submit", "--launcher", "srun -n {n}")
    assert not sbatch.exists()


def test_why_a_run_in_slurm_failed_is_told(started, sbatch):
    output = sweep("--submit", "--launcher", "srun -n {n}", "--dry-run", text=NARROW)
    logs = re.findall(r"exec >>(\S+) 2>&1", output)
    assert len(logs) == 3
    Path(logs[0]).parent.mkdir(parents=True)
    for log in logs:
        Path(log).write_text("noise\nsundsbo-mpi: no such thing; take another\n")
    refuse("no setting has all its runs.*failed: no such thing", "--collect", text=NARROW)
    sweep("--submit", "--launcher", "srun -n {n}", text=NARROW)  # it is tried again
    assert not any(Path(log).exists() for log in logs)


def test_a_checkpoint_that_cannot_be_used_is_not_left_for_the_array(started, sbatch):
    sweep("--dry-run", text=NARROW)
    output = sweep("--submit", "--launcher", "srun -n {n}", "--dry-run", text=NARROW)
    saved = [
        line.split("=")[1] for line in output.splitlines() if line.lstrip().startswith("saved")
    ]
    left = Path(saved[0]) / "iteration-3" / "manifest.json"
    left.parent.mkdir(parents=True)
    left.write_text("{}")
    sweep("--submit", "--launcher", "srun -n {n}", text=NARROW)
    assert not left.exists()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("seed = 3", r"unknown setting 'sweep\.seed': did you mean 'sweep\.seeds'"),
        ("search = 'gird'", r"unknown sweep\.search 'gird': did you mean 'grid'"),
        (
            "metric = 'sharpness'",
            r"not known whether more is better: is it misspelt\? If not, say sweep\.goal",
        ),
        ("goal = 'mx'", r"unknown sweep\.goal 'mx': did you mean 'max'"),
        ("finer = 99", r"sweep\.finer is 99: expected an integer"),
        ("seeds = 0", r"sweep\.seeds is 0: expected an integer"),
        ("seeds = 'many'", r"sweep\.seeds is 'many': expected an integer"),
        ("refine = ['algorithm.step_x']", r"'algorithm\.step_x': did you mean 'algorithm\.step_y'"),
        ("refine = 3", r"sweep\.refine is 3: expected a list"),
        ("preset = 'paper/toi'", r"unknown preset 'paper/toi'"),
        ("config = 'missing.toml'", r"cannot read the configuration 'missing\.toml'"),
    ],
)
def test_a_table_that_cannot_be_understood_is_refused(started, more, complaint):
    refuse(complaint, more=more)
    assert started == []
    assert not Path("steps").exists()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[sweep", "[swep", r"has no table \[sweep\]"),
        ("[sweep.over]", "[sweep.ovr]", r"unknown setting 'sweep\.ovr'"),
        ("algorithm.gamma", "algorithms.gamma", r"'algorithms': did you mean 'algorithm'"),
        ("algorithm.gamma", "algorithm.gama", r"'algorithm\.gama': did you mean 'algorithm\.gamm"),
        ("algorithm.gamma", '"algorithm.gamma"', "in quotes: write it without them"),
        ("algorithm.gamma", "run.seed", r"run\.seed is not to be chosen: say how many"),
        ("algorithm.gamma", "output.file", r"sets output\.file for every run itself"),
        ("[task]", "[output]\ncheckpoint = 'x'\n[task]", r"sets output\.checkpoint for every run"),
        ("[task]", "[tsk]\nx = 1\n[task]", r"unknown table 'tsk': did you mean 'task'"),
        ('file = "ring.npz"', "", "no topology: give the weight-matrix file"),
        ('"ring.npz"', '"wheel.npz"', r"wheel\.npz"),
        ("[1.0, 10.0]", "{{low = 1.0, high = 9.0, points = 5000}}", "at most 1000"),
        ("[1.0, 10.0]", f"{list(range(4000))}", "has 12,000 settings, expected at most 10,000"),
        ("iterations = 20", "iteration = 20", r"'run\.iteration': did you mean 'run\.iterations'"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(started, old, new, complaint):
    refuse(complaint, text=SWEEP.replace(old, new))
    assert started == []
    assert not Path("steps").exists()


def test_what_the_command_refuses(started):
    refuse(r"sets output\.file for every run", "--set", "output.file=x.h5")
    refuse("has no {n}", "--launcher", "mpirun")
    refuse("choose another directory with --out", "--out", "/dev/null/x")
    Path("steps").write_text(SWEEP.format(more=""))
    with pytest.raises(UsageError, match=r"'steps' does not end in \.toml"):
        CliRunner().invoke(command, ["steps"], catch_exceptions=False)
    assert started == []


def test_settings_of_the_file_and_the_command_lie_over_config_and_preset():
    Path("base.toml").write_text("[run]\niterations = 9\nseed = 8\n[algorithm]\nmu0 = 4.0\n")
    Path("s.toml").write_text(SWEEP.format(more="config = 'base.toml'\npreset = 'paper/toy'"))
    found = read_sweep(Path("s.toml"), ("run.seed=7",))
    config = resolve(Request(sets=found.sets("sun-dsbo-gt"), preset="paper/toy", file="base.toml"))
    assert (config.run.iterations, config.run.seed, config.algorithm["mu0"]) == (20, 7, 4.0)
    assert config.run.dtype == "float64"
