"""Flags that say how to read a topology file are refused where none is read."""

from __future__ import annotations

import sys

import pytest
from found_bench import found_bench

from sundsbo_mpi import cli
from sundsbo_mpi.bench import session
from sundsbo_mpi.bench.file import write_bench
from sundsbo_mpi.comm import world

FLAGS = [
    pytest.param(["--format", "mtx"], "--format", id="format"),
    pytest.param(["--weights", "w"], "--weights", id="weights"),
    pytest.param(["--undirected"], "--undirected", id="undirected"),
    pytest.param(["--weights", "w", "--undirected"], "--weights and --undirected", id="both"),
]
PREDICT = ("predict", "--model", "a.h5", "--algorithm", "sun-dsbo-se", "--topology")


@pytest.fixture
def ended(tmp_path, monkeypatch, capsys):
    """Run the program beside the bench a.h5; return its exit status and what it said."""
    monkeypatch.chdir(tmp_path)
    write_bench(tmp_path / "a.h5", found_bench())
    monkeypatch.setattr(world, "load_mpi", lambda: None)
    monkeypatch.setattr(session, "bench", print)

    def ended(*words):
        monkeypatch.setattr(sys, "argv", ["sundsbo-mpi", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, capsys.readouterr().err

    return ended


@pytest.mark.parametrize(("flags", "named"), FLAGS)
def test_predict_refuses_them_where_agents_makes_the_topology(ended, flags, named):
    out = "them" if "and" in named else "it"
    assert ended(*PREDICT, "ring", "--agents", "4", *flags) == (
        2,
        f"sundsbo-mpi: got {named}, expected only where a topology file is read, but --agents "
        f"makes the topology ring: leave {out} out, or give a file without --agents.\n",
    )
    assert ended(*PREDICT, "ring", "--agents", "4")[0] == 0


@pytest.mark.parametrize(("flags", "named"), FLAGS)
def test_bench_refuses_them_where_it_makes_a_ring(ended, flags, named):
    out = "them" if "and" in named else "it"
    assert ended("bench", *flags) == (
        2,
        f"sundsbo-mpi: got {named}, expected only where a topology file is read, but without "
        f"--topology a ring is made: leave {out} out, or name the file with --topology.\n",
    )
    assert ended("bench")[0] == 0


def test_they_are_for_files(ended, tmp_path):
    (tmp_path / "g.csv").write_text("0 1\n1 2\n2 3\n3 0\n")
    flags = ("--format", "edges", "--undirected")
    assert ended(*PREDICT, "g.csv", *flags)[0] == 0
    assert ended("bench", "--topology", "g.csv", *flags)[0] == 0
    status, said = ended(*PREDICT, "g.csv", "--agents", "4", *flags)
    assert status == 2
    assert "a file has its own number" in said
