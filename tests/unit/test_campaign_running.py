"""Which runs of a campaign are started, which are reused, and what is said of those that fail."""

import shlex
import sys
from pathlib import Path

import fake_runs
import h5py
import pytest
from rich.console import Console

from sundsbo_mpi.batch import program
from sundsbo_mpi.campaign import naming, running
from sundsbo_mpi.campaign.performing import Manner, Performer
from sundsbo_mpi.campaign.running import State, files_of
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.reproduce.paper import experiment
from sundsbo_mpi.reproduce.plan import Wish, check, jobs
from sundsbo_mpi.reproduce.results import collect
from sundsbo_mpi.reproduce.topologies import write_topology
from sundsbo_mpi.topology import BUILDERS, write_weights

LAUNCHER = "mpirun -n {n}"
DIGITS = ('task.dataset="digits"',)
METHODS = ("sun-dsbo-gt", "sun-dsbo-se")


def wish(tmp_path, **changes):
    given = {"seeds": 2, "only": ("H=0.5",), "methods": METHODS, "iterations": 20, "sets": DIGITS}
    return Wish(tmp_path / "a directory", **(given | changes))


def plan(tmp_path, **changes):
    return jobs(experiment("dcd"), wish(tmp_path, **changes))


@pytest.fixture
def started(monkeypatch):
    """Write run files in place of starting runs; return the list of what was started."""
    names = []

    def start(words, log):
        names.append(Path(words[words.index("--output") + 1]))
        fake_runs.write(words[words.index("run") + 1 :])
        return 0

    monkeypatch.setattr(running, "start", start)
    return names


def run(planned, launcher=LAUNCHER, **manner):
    how = Manner(launcher, **{"collect": False, "submit": False, "dry_run": False, **manner})
    directory = planned[0].path.parent.parent
    return Performer("name", directory, how, Console(file=sys.stderr)).perform("a", planned, [])


def test_the_plan_has_every_cell_and_seed(tmp_path):
    planned = plan(tmp_path)
    assert [(job.seed, job.method) for job in planned] == [(s, m) for s in (0, 1) for m in METHODS]
    assert len({job.path for job in planned}) == 4
    for job in planned:
        assert not job.refusal
        assert job.agents == 10
        assert job.wanted["task"]["heterogeneity"] == 0.5
        assert job.wanted["task"]["dataset"] == "digits"
        assert job.wanted["run"]["iterations"] == 20
        assert job.wanted["run"]["eval_every"] == 4


def test_by_default_it_is_the_papers(tmp_path):
    planned = jobs(experiment("dcd"), Wish(tmp_path))
    assert len(planned) == 7 * 3 * 10
    assert {job.wanted["run"]["iterations"] for job in planned} == {500}
    assert {job.wanted["run"]["eval_every"] for job in planned} == {50}


def test_steps_may_depend_on_the_condition_and_the_method(tmp_path):
    found = {
        (job.method, job.condition): job.wanted["algorithm"]
        for job in jobs(experiment("dcalpha"), Wish(tmp_path, seeds=1))
    }
    assert found["sun-dsbo-gt", "alpha=0.001"]["step_x"] == 0.03
    assert found["sun-dsbo-gt", "alpha=0.1"]["step_x"] == 0.02
    assert found["dsgda-gt", "alpha=0.01"]["step_y"] == 0.01
    assert found["sparkle-gt", "alpha=0.01"]["step_z"] == 0.03


@pytest.mark.parametrize(
    ("label", "method", "settings"),
    [
        ("dcd", "sparkle-extra", {"step_x": 0.03, "step_z": 0.03, "moving_average": 0.2}),
        ("dcd", "dsgda-gt", {"step_x": 0.02, "step_y": 0.02, "nu": 0.1}),
        ("dcsl", "gnsd", {"step_y": 0.1}),
        ("hrr2", "sun-dsbo-se", {"step_x": 0.05, "step_theta": 0.05, "mu0": 1.0}),
        ("tablehrgamma", "sun-dsbo-gt", {"gamma": 0.005, "step_x": 0.07, "mu0": 1.0}),
        ("meta_O", "d-soba", {"step_x": 0.01, "lazy": True}),
    ],
)
def test_settings_of_the_paper(tmp_path, label, method, settings):
    planned = jobs(experiment(label), Wish(tmp_path, seeds=1, methods=(method,)))
    assert settings.items() <= planned[-1].wanted["algorithm"].items()


@pytest.mark.parametrize("name", ["dcnum", "dctopo", "hrvtopo", "hpcirm", "toyopt", "thm-gap"])
def test_nothing_of_the_paper_is_refused(tmp_path, name):
    refused = {job.refusal for job in jobs(experiment(name), Wish(tmp_path, seeds=1))}
    assert refused == {""}


def test_the_same_run_of_two_tables_is_one_file(tmp_path):
    one = jobs(experiment("dcd"), wish(tmp_path, only=("H=0.1",)))
    two = jobs(experiment("dccr"), wish(tmp_path, only=("cr=0.3",)))
    assert [job.path for job in one] == [job.path for job in two]
    assert len(running.missing([*one, *two])) == 4


@pytest.mark.parametrize("name", ["dctopo", "hrvtopo", "dcnum", "thm-gap"])
def test_a_written_topology_makes_no_other_run(tmp_path, name):
    before, after = [], []
    for found in (before, after):
        for job in jobs(experiment(name), Wish(tmp_path, seeds=1)):
            found.append(job.path)
            write_topology(job.topology_file, job.agents, job.topology)
    assert before == after


def test_another_topology_under_the_same_name_makes_other_runs(tmp_path):
    (job, *_) = before = plan(tmp_path)
    job.prepare()
    assert [job.path for job in plan(tmp_path)] == [job.path for job in before]
    job.topology_file.unlink()
    write_weights(BUILDERS["complete"](job.agents), str(job.topology_file))
    assert not {job.path for job in plan(tmp_path)} & {job.path for job in before}


def test_another_task_file_under_the_same_name_makes_other_runs(tmp_path):
    source = tmp_path / "mine.py"
    text = "from sundsbo_mpi.tasks.hyper_cleaning import HyperCleaning as Mine\n"
    source.write_text(text)
    sets = (*DIGITS, f'task.name="{source}:Mine"')
    before = {job.path for job in plan(tmp_path, sets=sets)}
    assert all(path.name.startswith("Mine_sun-dsbo-") for path in before)
    source.write_text(f"{text}# mended\n")
    naming._source.cache_clear()  # by a process that ends
    assert not {job.path for job in plan(tmp_path, sets=sets)} & before


def test_finished_runs_are_reused(tmp_path, started):
    planned = plan(tmp_path)
    run(planned)
    assert started == [job.path for job in planned]
    assert {running.state(job) for job in planned} == {State.FINISHED}
    run(plan(tmp_path, seeds=3))
    assert len(started) == 6
    run(plan(tmp_path, sets=(*DIGITS, "task.alpha=0.01")))
    assert len(started) == 10


def test_places_and_devices_do_not_make_another_run(tmp_path, started):
    run(plan(tmp_path))
    moved = tmp_path / "moved"
    (tmp_path / "a directory").rename(moved)
    again = jobs(
        experiment("dcd"),
        Wish(moved, 2, ("H=0.5",), METHODS, 20, (*DIGITS, "run.device=cpu"), None, "elsewhere"),
    )
    assert running.missing(again) == []


@pytest.mark.parametrize("spoil", ["settings", "status", "killed"])
def test_other_and_unfinished_runs_are_run_again(tmp_path, started, spoil):
    planned = plan(tmp_path)
    run(planned)
    job = planned[1]
    words = (*job.settings, *files_of(job))
    if spoil == "settings":
        fake_runs.write(words, tables={"task": {"name": "hyper-cleaning", "dataset": "digits"}})
        expected = State.OTHER
    elif spoil == "status":
        fake_runs.write(words, status="failed")
        expected = State.FAILED
    else:
        fake_runs.write(words, status="interrupted")
        expected = State.UNFINISHED
    assert running.state(job) is expected
    assert running.missing(planned) == [job]
    run(planned)
    assert started[4:] == [job.path]
    assert running.missing(planned) == []
    job.path.write_bytes(b"no run file")
    assert running.state(job) is State.UNFINISHED


def test_a_failing_run_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    def start(words, log):
        if "sun-dsbo-gt" in words:
            log.write_text("noise\nsundsbo-mpi: agent 3: x is not finite in iteration 7\nnoise\n")
            return 3
        fake_runs.write(words[words.index("run") + 1 :])
        return 0

    monkeypatch.setattr(running, "start", start)
    planned = plan(tmp_path)
    run(planned)
    gt, se = collect(planned)
    assert (gt.method, sorted(gt.runs), sorted(se.runs)) == ("sun-dsbo-gt", [], [0, 1])
    assert gt.troubles[0] == "failed: agent 3: x is not finite in iteration 7"
    assert se.troubles == {}


def test_a_refused_run_is_told_and_not_started(tmp_path, started):
    planned = plan(tmp_path, sets=(*DIGITS, "algorithm.step_theta=-1.0", "task.batsch=3"))
    assert running.missing(planned) == []
    cells = collect(planned)
    assert "did you mean 'task.batch'" in cells[0].troubles[0]
    assert started == []


def test_a_real_process_and_its_log(tmp_path, capsys):
    fake = f"'{sys.executable}' '{fake_runs.__file__}' -n {{n}}"
    job = plan(tmp_path)[0]
    job.path.parent.mkdir(parents=True)
    words = running.command(job, fake)
    assert words[3] == "10"
    run([job], fake)
    assert f"{job.title}: finished\n" in capsys.readouterr().err, "a line, where no bar moves"
    assert running.state(job) is State.FINISHED
    assert not job.log.exists()
    words = [sys.executable, "-c", "import sys; print('sundsbo-mpi: no'); sys.exit(2)"]
    job.path.unlink()
    assert running.start(words, job.log) == 2
    assert running.why_lacking(job) == "failed: no"


def test_a_launcher_that_starts_nothing_is_told(tmp_path):
    job = plan(tmp_path)[0]
    run([job], f"'{sys.executable}' -c 'print({{n}})'")
    assert running.why_lacking(job).endswith("ended with status 0 but left no finished run")
    assert job.log.read_text().startswith("10\n")


@pytest.mark.parametrize(
    "tables",
    [
        {"run": [1]},
        {"run": None, "task": 3},
        {"task": "text"},
        {"topology": {"file": 5}},
        {"topology": []},
    ],
)
def test_a_foreign_run_file_is_a_run_of_other_settings(tmp_path, tables):
    job = plan(tmp_path)[0]
    job.path.parent.mkdir(parents=True)
    fake_runs.write((*job.settings, *files_of(job)), tables=tables)
    assert running.state(job) is State.OTHER


def test_a_finished_run_without_evaluations_is_no_result(tmp_path, started):
    job, *_ = planned = plan(tmp_path)
    run(planned)
    with h5py.File(job.path, "r+") as file:
        file["metrics/rows"][()] = 0
    assert running.missing(planned) == [job]
    assert job.seed not in collect(planned)[0].runs


@pytest.mark.parametrize(
    "text",
    [
        *("output.file=precious.h5", "output.overwrite=false", "algorithm.name=dsbo"),
        *("run.seed=3", "run.iterations=3", 'topology.file="ring.npz"'),
    ],
)
def test_settings_of_the_plan_are_refused(tmp_path, text):
    with pytest.raises(UsageError, match="would make other runs than those of the table"):
        check([experiment("dcd")], wish(tmp_path, sets=(*DIGITS, text)))
    check([experiment("dcd")], wish(tmp_path, sets=("run.eval_every=3", "algorithm.step_x=0.1")))


def test_launchers(tmp_path):
    job = plan(tmp_path)[0]
    words = running.command(job, "'/my tools/mpirun' -np {n} --map-by :oversubscribe")
    assert words[:5] == ["/my tools/mpirun", "-np", "10", "--map-by", ":oversubscribe"]
    own = program()
    assert words[5 : 6 + len(own)] == [*own, "run"]
    assert running.command(job, "srun --ntasks={n}")[1] == "--ntasks=10"
    with pytest.raises(UsageError, match=r"has no \{n\}"):
        running.command(job, "mpirun -n 10")
    with pytest.raises(UsageError, match="close what you have opened"):
        running.command(job, "mpirun '{n}")
    with pytest.raises(UsageError, match="cannot start 'no-such-launcher'"):
        running.start(["no-such-launcher"], tmp_path / "x.log")
    assert shlex.split(running.usual_launcher("mpirun"))[1:] == ["-n", "{n}"]


def test_topologies_are_written_before_the_runs(tmp_path, started, capsys):
    planned = jobs(experiment("dctopo"), Wish(tmp_path, seeds=1, sets=DIGITS, iterations=20))
    assert not run(planned, dry_run=True)
    printed = [shlex.split(line) for line in capsys.readouterr().out.splitlines()]
    assert [words[len(program())] for words in printed[:5]] == ["topology"] * 5
    assert [words[3 + len(program())] for words in printed[5:]] == ["run"] * 10
    assert "--offsets 1,2 --self-weight 0.6" in " ".join(printed[1])
    assert not list(tmp_path.iterdir())
    run(planned)
    assert len(list((tmp_path / "topologies").iterdir())) == 5
    assert run(planned, dry_run=True)
    assert capsys.readouterr().out == ""


def test_unknown_conditions_and_methods_are_refused(tmp_path):
    both = [experiment("hrr1"), experiment("hrr2")]
    check(both, Wish(tmp_path, only=("H=0.1",), methods=("dsgda-gt",)))
    with pytest.raises(UsageError, match=r"unknown condition 'H=0\.2'"):
        check(both, Wish(tmp_path, only=("H=0.2",)))
    with pytest.raises(UsageError, match="unknown method 'gnsd'"):
        check(both, Wish(tmp_path, methods=("gnsd",)))
    with pytest.raises(UsageError, match="what varies here"):
        check([experiment("thm-iterations")], Wish(tmp_path, iterations=10))
