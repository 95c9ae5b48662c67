"""A job that goes on is watched, and what it leaves is read by every command that shows runs."""

import csv
import threading

from programs import BIN, assert_refused, finish


def test_a_job_is_watched_from_before_its_file_is_there(mpirun, sundsbo, network, tmp_path):
    watched = []

    def watch():
        command = [BIN / "sundsbo-mpi", "watch", "run.h5", "--patience", 100]
        watched.append(finish(command, tmp_path))

    watching = threading.Thread(target=watch)
    watching.start()
    flags = ("--topology", network(2), "--iterations", 6, "--eval-every", 2, "--output", "run.h5")
    done = mpirun(2, *flags)
    watching.join()
    assert done.returncode == 0, done.stderr
    (seen,) = watched
    assert seen.returncode == 0, seen.stderr
    lines = seen.stdout.splitlines()
    assert lines[0] == "waiting for 'run.h5' ..."
    assert any(words.startswith("iteration 6/6: test_accuracy ") for words in lines)
    assert lines[-1].startswith("finished ")

    page = sundsbo("report", "run.h5", "-o", "run.html")
    assert page.returncode == 0, page.stderr
    assert "Training samples of every agent" in (tmp_path / "run.html").read_text()
    tables = sundsbo("export", "run.h5", "--csv", "tables")
    assert tables.returncode == 0, tables.stderr
    with (tmp_path / "tables" / "run" / "agents.csv").open(newline="") as file:
        agents = list(csv.DictReader(file))
    for agent in agents:
        counted = sum(int(agent[f"train_label_{label}"]) for label in range(10))
        assert counted == int(agent["train_samples"])


def test_a_file_that_does_not_come_and_one_that_is_odd(sundsbo, tmp_path):
    result = sundsbo("watch", "none.h5", "--patience", 1)
    assert_refused(result, "waited 1 s for 'none.h5', which is not there", "--patience SECONDS")
    (tmp_path / "odd.h5").write_text("odd")
    assert_refused(sundsbo("watch", "--once", "odd.h5"), "'odd.h5' cannot be read as an HDF5 file")
