"""``bench`` on started ranks, and ``predict`` on what it wrote."""

import csv
import json

import h5py
import pytest
from programs import assert_refused

from sundsbo_mpi.bench.file import read_bench
from sundsbo_mpi.bench.prediction import decentralised
from sundsbo_mpi.comm import openmpi
from sundsbo_mpi.comm.world import load_mpi

TINY = ("--sizes", "4,4096", "--payload", "20,10", "--repeats", 2)


def test_a_bench_and_a_prediction_from_it(mpirun, sundsbo, tmp_path):
    result = mpirun(3, "bench", *TINY, "--output", "here.h5")
    assert result.returncode == 0, result.stderr
    for words in ("3 ranks on 1 node", "ring (n=3)", "mpi-blocking", "allreduce", "sun-dsbo-gt"):
        assert words in result.stdout
    assert "wrote here.h5" in result.stderr
    found = read_bench(tmp_path / "here.h5")
    names = [name for sent in found.methods for name in sent.names]
    assert sorted(names) == sorted(decentralised())
    assert all(name in result.stdout for name in names)
    assert found.ranks["host"].size == 3
    with h5py.File(tmp_path / "here.h5") as file:
        told = json.loads(file.attrs["environment"])
    assert openmpi.settings({}, *load_mpi().get_vendor()).items() <= told.items()
    assert set(found.links["auto", "host"]) == {"same node"}
    assert (found.checks["auto", "host"].measured > 0).all()
    options = ("--model", "here.h5", "--ranks-per-node", 500, "--csv", "there.csv")
    predicted = sundsbo("predict", "--topology", "torus", "--agents", 500, *options)
    assert predicted.returncode == 0, predicted.stderr
    with (tmp_path / "there.csv").open(encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    seconds = {name: float(row["exchange"]) for name, row in rows.items()}
    assert seconds["sun-dsbo-gt"] == pytest.approx(2 * seconds["sun-dsbo-se"])


def test_a_bench_refuses_before_it_measures(mpirun, in_turn, network, tmp_path):
    (tmp_path / "here.h5").touch()
    assert_refused(mpirun(2, "bench", *TINY, "--output", "here.h5"), "not a readable HDF5 file")
    wrong = mpirun(2, "bench", *TINY, "--topology", network(3))
    assert_refused(wrong, "has 3 agents but 2 ranks", "leave --topology out")
    gpus = ("bench", *TINY, "--gpu-direct", "--device", "cpu")
    few, none = in_turn([("bench", "--sizes", "4"), gpus])
    assert_refused(few, "two sizes or more")
    assert_refused(none, "memory of GPUs")


def test_one_rank_measures_what_needs_no_neighbour(sundsbo, tmp_path):
    result = sundsbo("bench", *TINY, "--output", "alone.h5")
    assert result.returncode == 0, result.stderr
    assert "one rank has no neighbours" in result.stderr
    assert "memcpy" in result.stdout
    assert "mpi-blocking" not in result.stdout.replace("mpi-...", "")
    again = sundsbo("bench", *TINY, "--output", "alone.h5")
    assert_refused(again, "exists already", "--overwrite")
    assert sundsbo("bench", *TINY, "--output", "alone.h5", "--overwrite").returncode == 0
    assert not list(tmp_path.glob(".*.part"))
