"""What happens before a run has loaded what it needs."""

import gc
import os
import signal
import time
from functools import partial

import pytest
from click.testing import CliRunner

from sundsbo_mpi.checkpoint import Manifest
from sundsbo_mpi.checkpoint.manifest import About
from sundsbo_mpi.checkpoint.resuming import Candidate
from sundsbo_mpi.cli import sundsbo_mpi
from sundsbo_mpi.cli.beginning import begin, loading
from sundsbo_mpi.comm import world
from sundsbo_mpi.config.resolving import Request
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.running import run as run_module

PATIENCE = 10


def test_a_warning_while_the_rest_is_loaded_is_not_lost(monkeypatch):
    def run(_request, began, early):
        assert began <= time.monotonic()
        os.kill(os.getpid(), signal.SIGUSR2)
        end = time.monotonic() + PATIENCE
        while len(early) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        return early

    monkeypatch.setattr(world, "load_mpi", lambda: os.kill(os.getpid(), signal.SIGUSR1))
    monkeypatch.setattr(run_module, "run", run)
    assert begin(Request(), print_config=False) == ["SIGUSR1", "SIGUSR2"]
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_what_is_loaded_is_kept_from_the_garbage_collector(monkeypatch):
    monkeypatch.setattr(world, "load_mpi", lambda: seen.append(gc.isenabled()))
    seen: list[bool] = []
    gc.unfreeze()
    try:
        with loading():
            made = [[]]
            seen.append(gc.isenabled())
        assert gc.get_freeze_count() > 0
        assert not any(one is made for one in gc.get_objects())
    finally:
        gc.unfreeze()
    assert seen == [False, False]
    assert gc.isenabled()


def test_the_garbage_collector_is_back_where_nothing_could_be_loaded(monkeypatch):
    monkeypatch.setattr(world, "load_mpi", lambda: None)
    gc.unfreeze()
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        *((("run", f"--{flag}", ""), f"--{flag}") for flag in ("config", "preset", "like", "task")),
        *((("run", f"--{flag}", ""), f"--{flag}") for flag in ("checkpoint", "output", "topology")),
        (("resume", ""), "DIRECTORY"),
        (("resume", "saved", "--topology", ""), "--topology"),
        (("run", "--set", "output.checkpoint="), "output.checkpoint"),
        (("run", "--set", "output.file="), "output.file"),
    ],
)
def test_an_empty_name_is_refused(words, named):
    done = CliRunner().invoke(sundsbo_mpi, [*words, "--print-config"])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(f"{named} is empty")


def test_a_stopped_run_says_from_where_it_goes_on(tmp_path, monkeypatch):
    """From an earlier iteration than it came to where its last checkpoint could not be kept."""
    said = partial(run_module._from_where, str(tmp_path / "saved"), again="resume it")
    assert said(5).startswith("it cannot go on: there is no checkpoint in")
    about = About(2, [0, 1], {}, "", "")
    newest = Candidate(tmp_path, Manifest(100, about, "", [1, 1], ["", ""]))
    monkeypatch.setattr(run_module, "candidates", lambda _folder: (newest,))
    assert said(100) == "go on with: resume it"
    assert said(202) == "go on with: resume it (from iteration 100)"
