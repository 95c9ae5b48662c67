"""Who calls MPI_Abort: it ends the others, and where there are none, the exit status counts."""

from types import SimpleNamespace

import pytest

from sundsbo_mpi.comm import ending
from sundsbo_mpi.comm.launcher import Launcher


class MPIError(Exception):
    pass


class NoMPI:
    """What mpi4py.MPI says in a process of a job of ``size``, of which ``lost`` are."""

    Exception = MPIError

    def __init__(self, size, lost, live=True, finalised=False):
        self._live, self._finalised = live, finalised

        def failed():
            if isinstance(lost, BaseException):
                raise lost
            return SimpleNamespace(size=lost)

        self.COMM_WORLD = SimpleNamespace(rank=1, size=size, Get_failed=failed)

    def Is_initialized(self):
        return self._live

    def Is_finalized(self):
        return self._finalised


@pytest.mark.parametrize(
    ("mpi", "started", "aborts"),
    [
        (NoMPI(4, 0), 4, True),
        (NoMPI(4, 2), 4, True),
        (NoMPI(4, 3), 4, False),
        (NoMPI(2, 1), 2, False),
        (NoMPI(4, NotImplementedError()), 4, True),
        (NoMPI(4, MPIError()), 4, True),
        (NoMPI(4, 0, finalised=True), 4, False),
        (NoMPI(4, 0, live=False), 4, True),
        (None, 4, True),
        (None, None, True),
        (None, 1, False),
    ],
)
def test_who_is_left_alone_exits(monkeypatch, capsys, mpi, started, aborts):
    ended = []

    def leave(status):
        ended.append(("exit", status))
        raise SystemExit

    world = SimpleNamespace(Abort=lambda status: ended.append(("abort", status)))
    monkeypatch.setattr(ending, "_mpi", lambda: mpi)
    monkeypatch.setattr(ending, "find_launcher", lambda: Launcher("mpirun", 1, started, pmix=True))
    monkeypatch.setattr(ending, "start_mpi", lambda: world)
    monkeypatch.setattr(ending.os, "_exit", leave)
    monkeypatch.setattr(ending.time, "sleep", lambda seconds: ended.append(("sleep", seconds)))
    monkeypatch.setattr(ending.faulthandler, "dump_traceback_later", lambda *_, **__: None)
    with pytest.raises(SystemExit):
        ending.abort(RuntimeError("trouble"))
    heard = ("sleep", ending.HEARING_SECONDS)  # before the launcher ends without its words
    assert ended == ([heard, ("abort", 1), ("exit", 1)] if aborts else [("exit", 1)])
    assert "RuntimeError: trouble" in capsys.readouterr().err
