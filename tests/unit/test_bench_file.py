"""The file of a bench, its tables, and what predict makes of it."""

import csv
import dataclasses
import subprocess
import sys

import h5py
import numpy as np
import pytest
import torch
from bench import ring
from click.testing import CliRunner
from found_bench import FAR, NEAR, SIZES, found_bench
from lockstep import Lockstep
from rich.console import Console

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.bench.file import read_bench, write_bench
from sundsbo_mpi.bench.model import Fit
from sundsbo_mpi.bench.record import Sent, Series
from sundsbo_mpi.bench.report import render_bench
from sundsbo_mpi.cli import predict
from sundsbo_mpi.cli.bench import command as bench_command
from sundsbo_mpi.cli.compare import command as compare
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.runfile import read_run
from sundsbo_mpi.runfile.schema import BENCH_FORMAT
from sundsbo_mpi.tasks.hyper_representation import HyperRepresentation
from sundsbo_mpi.texttable import seconds, size
from sundsbo_mpi.topology import BUILDERS, write_weights


@pytest.fixture
def path(tmp_path):
    write_bench(tmp_path / "a.h5", found_bench())
    return tmp_path / "a.h5"


def predicted(*arguments):
    words = [str(a) for a in arguments]
    return CliRunner().invoke(
        predict.command, words, catch_exceptions=False, env={"COLUMNS": "200"}
    )


def lines(result, start):
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.output.splitlines() if line.strip().startswith(start)]


def test_what_is_written_comes_back(path):
    found, written = read_bench(path), found_bench()
    assert found.attributes.items() >= written.attributes.items()
    assert found.attributes["format"] == BENCH_FORMAT
    for name in ("sizes", "edges"):
        np.testing.assert_array_equal(getattr(found, name), getattr(written, name))
    for name in ("ranks", "pairs", "series", "checks"):
        assert getattr(found, name).keys() == getattr(written, name).keys()
    for name in ("ranks", "pairs"):
        for key, value in getattr(written, name).items():
            np.testing.assert_array_equal(getattr(found, name)[key], value)
    for name in ("series", "checks"):
        for key, value in getattr(written, name).items():
            for part in value._fields:
                mine, theirs = (getattr(of, part) for of in (getattr(found, name)[key], value))
                np.testing.assert_array_equal(mine, theirs)
    assert found.links == written.links
    assert found.methods == written.methods
    model = found.model("auto", "host")
    assert model.ranks_per_node == 2
    assert model.links == {"same node": NEAR, "other node": FAR}


def test_methods_that_send_the_same_come_back_each(tmp_path):
    alike = (Sent(("d-soba", "sun-dsbo-ed"), 1, 200), Sent(("sun-dsbo-gt",), 2, 400))
    write_bench(tmp_path / "a.h5", dataclasses.replace(found_bench(), methods=alike))
    assert read_bench(tmp_path / "a.h5").methods == alike
    with h5py.File(tmp_path / "a.h5") as file:
        names = file["methods/name"].asstr()[()].tolist()
    assert names == ["d-soba, sun-dsbo-ed", "sun-dsbo-gt"]


def test_a_file_that_names_the_binding_cores_is_read(path):
    with h5py.File(path, "a") as file:
        file.move("ranks/binding", "ranks/cores")
        del file["ranks/node_cores"]
    found = read_bench(path)
    assert found.ranks.keys() == {"host", "node", "device", "binding"}
    assert found.ranks["binding"].tolist() == ["0-1", "0-1", "0,2", "0,2"]
    words = ("--topology", "ring", "--agents", 4, "--model", path, "--algorithm", "sun-dsbo-se")
    assert lines(predicted(*words), "sun-dsbo-se")
    assert CliRunner().invoke(compare, [str(path)], catch_exceptions=False).exit_code == 0


def test_nothing_is_left_beside_the_file(path):
    assert list(path.parent.iterdir()) == [path]


def test_a_bench_of_one_rank_comes_back(tmp_path):
    alone = dataclasses.replace(
        found_bench(),
        edges=np.empty((0, 2), dtype=np.int64),
        pairs={name: values[:0] for name, values in found_bench().pairs.items()},
        links={},
        methods=(),
        checks={},
    )
    write_bench(tmp_path / "a.h5", alone)
    found = read_bench(tmp_path / "a.h5")
    assert (found.links, found.methods, found.checks) == ({}, (), {})
    assert found.edges.shape == (0, 2)
    with pytest.raises(UsageError, match="measured on one rank"):
        predicted("--topology", "ring", "--agents", 4, "--model", tmp_path / "a.h5")


def test_a_file_is_replaced_only_when_asked_for(path):
    before = path.read_bytes()
    with pytest.raises(UsageError, match="--overwrite"):
        write_bench(path, found_bench())
    assert path.read_bytes() == before
    other = dataclasses.replace(found_bench(), sizes=SIZES + 4)
    write_bench(path, other, overwrite=True)
    assert read_bench(path).sizes.tolist() == (SIZES + 4).tolist()
    assert list(path.parent.iterdir()) == [path]


def test_a_directory_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="no directory"):
        write_bench(tmp_path / "none" / "a.h5", found_bench())


def say(path, what):
    """Let a file say that it has another format."""
    with h5py.File(path, "a") as file:
        file.attrs["format"] = what


def test_files_that_are_no_bench_are_refused(tmp_path, path):
    with pytest.raises(UsageError, match="there is no bench file"):
        read_bench(tmp_path / "b.h5")
    (tmp_path / "text.h5").write_text("hello")
    with pytest.raises(UsageError, match="cannot be read"):
        read_bench(tmp_path / "text.h5")
    with h5py.File(path, "a") as file:
        del file["sizes"]
    with pytest.raises(UsageError, match="cannot be read as the file of a bench"):
        read_bench(path)
    say(path, "sundsbo-mpi/1")
    with pytest.raises(UsageError, match="is the file of a run, expected 'sundsbo-mpi-bench/1'"):
        read_bench(path)
    say(path, [BENCH_FORMAT, BENCH_FORMAT])
    with pytest.raises(UsageError, match="has no format that can be read, expected"):
        read_bench(path)
    with pytest.raises(UsageError, match="has no format that can be read, expected"):
        read_run(path)


def test_who_takes_a_bench_for_a_run_is_told_what_reads_it(path):
    with pytest.raises(UsageError, match="'sundsbo-mpi compare' and 'sundsbo-mpi predict' read"):
        read_run(path)
    say(path, "sundsbo-mpi/0")
    with pytest.raises(UsageError, match="read it with the version that wrote it"):
        read_run(path)


def moved(values):
    return values + 100


def shorter(values):
    return values[:-1]


def words(values):
    return np.full(values.shape, b"x")


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("sizes", shorter),
        ("ranks/node", shorter),
        ("ranks/host", shorter),
        ("ranks/binding", words),
        ("ranks/node_cores", shorter),
        ("topology/edges", np.ravel),
        ("topology/edges", moved),
        ("pairs/second", moved),
        ("pairs/first", np.float64),
        ("pairs/latency_s", shorter),
        ("series/round/auto/host/all/median", np.transpose),
        ("series/round/auto/host/all/slowest", shorter),
        ("series/memcpy/none/host/none/p95", words),
        ("checks/auto/host/measured", shorter),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(path, name, spoil):
    with h5py.File(path, "a") as file:
        values = file[name][()]
        del file[name]
        file[name] = spoil(values)
    with pytest.raises(UsageError, match="cannot be read as the file of a bench"):
        read_bench(path)


def test_the_tables_say_what_was_found():
    console = Console(width=200)
    with console.capture() as captured:
        console.print(render_bench(found_bench()))
    text = captured.get()
    words = {line.strip() for line in text.splitlines()}
    assert any(
        line.startswith("4 ranks on 2 nodes (cores 0-1, 0,2); ring (n=4) [odd]") for line in words
    )
    shown = " ".join(text.split())
    assert "round auto host 25 µs [38.5 µs] 65 µs [78.5 µs]" in shown
    assert "same node 1 1 µs [1 µs] 9 GB/s [9 GB/s]" in shown
    assert "auto host other node 5 µs 1.25 GB/s 50 %" in shown
    assert "sun-dsbo-gt: 2 rounds, 400 B" in shown
    assert "sun-dsbo-se: 1 round, 200 B to a neighbour 1 ms / 2 ms = 0.50" in shown


@pytest.mark.parametrize(
    ("kept", "fitted", "shown"),
    [
        (2, Fit(5e-6, 8e-10, 0.0), "5 µs 1.25 GB/s –"),
        (2, Fit(5e-6, 0.0, 0.5), "5 µs – 50 %"),  # flat: one cost cannot meet two times
        (2, Fit(0.0, 8e-10, 0.5), "0 ns 1.25 GB/s 50 %"),
        (3, Fit(5e-6, 8e-10, 0.0), "5 µs 1.25 GB/s 0 %"),
    ],
)
def test_no_error_of_the_fit_is_told_where_the_sizes_fix_a_line(kept, fitted, shown):
    found = found_bench()
    fewer = dataclasses.replace(
        found,
        sizes=SIZES[:kept],
        series={
            key: Series(*(seconds[:kept] for seconds in of_key))
            for key, of_key in found.series.items()
        },
        links={("auto", "host"): {"same node": fitted}},
    )
    console = Console(width=200)
    with console.capture() as captured:
        console.print(render_bench(fewer))
    assert f"auto host same node {shown} " in " ".join(captured.get().split())


def test_numbers_with_their_units():
    assert [seconds(s) for s in (0.0, 1.5e-9, 2e-6, 3e-3, 4.0, float("nan"))] == [
        *("0 ns", "1.5 ns", "2 µs", "3 ms", "4 s", "–"),
    ]
    assert [size(b) for b in (0, 999, 1500, 2e6, 3e9, 4e12, 5e15)] == [
        *("0 B", "999 B", "1.5 kB", "2 MB", "3 GB", "4 TB", "5e+03 TB"),
    ]


def test_predict_by_name_and_by_file(path, tmp_path):
    options = ("--model", path, "--payload", "100,50", "--gradient-seconds", 0.5)
    chosen = ("--algorithm", "sun-dsbo-gt")
    made = predicted("--topology", "ring", "--agents", "4,6", *options, *chosen)
    of_gt = lines(made, "sun-dsbo-gt")
    one_round = NEAR.alpha + FAR.alpha + (NEAR.beta + FAR.beta) * 4 * 200
    assert [row[1] for row in of_gt] == ["4", "6"]
    assert of_gt[0][4:6] == seconds(2 * one_round).split()
    assert of_gt[0][6:8] == seconds(0.5 + 2 * one_round).split()
    write_weights(BUILDERS["ring"](4), str(tmp_path / "W.npz"))
    read = predicted("--topology", tmp_path / "W.npz", *options, *chosen)
    assert lines(read, "sun-dsbo-gt") == of_gt[:1]
    assert "an iteration is its exchange" not in made.output
    assert "to all neighbours together" in made.output


def test_predict_lists_all_methods_and_writes_numbers(path, tmp_path):
    options = ("--model", path, "--payload", "100000,50000", "--csv", tmp_path / "a.csv")
    shown = predicted("--topology", "ring", "--agents", 8, *options, "--dtype", "float64")
    for method in ("dsbo", "gossip-dsbo"):
        assert f"without {method}: " in shown.output
    assert "without --gradient-seconds an iteration is its exchange" in shown.output
    with (tmp_path / "a.csv").open(encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert "meha" not in rows
    assert float(rows["sun-dsbo-se"]["bytes_most"]) == 2 * 8 * 200_000
    assert float(rows["sun-dsbo-semi-gt"]["bytes_all"]) == 8 * 2 * 2 * 8 * 200_000
    assert float(rows["sun-dsbo-gt"]["iteration"]) == pytest.approx(
        2 * float(rows["sun-dsbo-se"]["iteration"])
    )


def test_predict_asks_a_task_for_its_sizes(path, tmp_path):
    task = ("--task", "quadratic", "--set", "task.d_x=7", "--set", "task.d_y=3")
    options = ("--model", path, *task, "--csv", tmp_path / "a.csv", "--algorithm", "sun-dsbo-se")
    predicted("--topology", "ring", "--agents", 4, *options)
    with (tmp_path / "a.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert float(row["bytes_most"]) == 2 * 4 * (7 + 3 + 3)


@pytest.mark.parametrize("method", ["d-psgd", "gnsd", "sun-dsbo-se"])
def test_predict_counts_the_bytes_that_a_run_on_the_task_sends(path, tmp_path, method):
    """The single-level methods train x and y of this task."""
    options = {"dataset": "digits", "hidden": 3, "heterogeneity": 0.5}
    words = ("--task", "hyper-representation", "--set", "task.hidden=3", "--algorithm", method)
    network = ("--topology", "ring", "--agents", 3, "--model", path, "--csv", tmp_path / "a.csv")
    predicted(*network, *words)
    with (tmp_path / "a.csv").open(encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    shards = HyperRepresentation.shards(agents=3, seed=0, **options)
    tasks = [
        HyperRepresentation(agent=i, agents=3, seed=0, shard=shard, **options)
        for i, shard in enumerate(shards)
    ]
    for task in tasks:
        task.to(torch.device("cpu"), torch.float32)
    run = Lockstep(by_default(METHODS[method]), tasks, ring(3, 0.5)).run(2)
    assert float(row["bytes_most"]) == 2 * run.bytes / 2  # to two neighbours, in two iterations


def test_predict_leaves_methods_out_that_cannot_train_on_the_task(path):
    words = ("--topology", "ring", "--agents", 4, "--model", path, "--task", "quadratic")
    (why,) = (line for line in predicted(*words).output.splitlines() if "without d-psgd" in line)
    assert "without d-psgd, gnsd: the task has no single_level()" in why
    with pytest.raises(UsageError, match="cannot train on it"):
        predicted(*words, "--algorithm", "gnsd")


def test_predict_knows_how_messages_are_sent(path, tmp_path):
    options = ("--model", path, "--payload", "1000,500", "--csv", tmp_path / "a.csv")
    small = ("--set", "algorithm.compressor=top-k", "--set", "algorithm.private=true")
    shown = predicted("--topology", "ring", "--agents", 8, *options, *small)
    with (tmp_path / "a.csv").open(encoding="utf-8") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    of_y = 500 / 8 + 0.5 + 2 * 50  # a map of 63 bytes, and 50 numbers
    assert float(rows["sun-dsbo-gt"]["bytes_most"]) == 2 * 2 * 2 * of_y
    assert "sun-dsbo-ed" not in rows
    assert "but algorithm.compressor=top-k, but algorithm.private=true" in shown.output
    (why,) = (line for line in shown.output.splitlines() if "without sun-dsbo-extra, " in line)
    assert "sparkle-ed" in why


def test_predict_does_not_compress_where_neighbours_change(path):
    words = ("--topology", "one-peer", "--agents", 8, "--model", path)
    with pytest.raises(UsageError, match="the weights change"):
        predicted(*words, "--set", "algorithm.compressor=quantiser")


def test_predict_hides_no_fault_of_a_builder(path, monkeypatch):
    def ring(agents):
        raise TypeError("a fault")

    monkeypatch.setitem(BUILDERS, "ring", ring)
    with pytest.raises(TypeError, match="a fault"):
        predicted("--topology", "ring", "--agents", 4, "--model", path)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--payload", "5,0"), "a length of --payload is 0"),
        (("--transport", "sharde"), "unknown measured transport"),
        (("--buffers", "device"), "unknown measured transport 'auto with --buffers device'"),
        (("--algorithm", "sun-dsbo-g"), "did you mean 'sun-dsbo-gt'"),
        (("--algorithm", "meha"), "meha sends nothing"),
        (("--algorithm", "dsbo"), "expected at most"),
        (("--dtype", "int8"), "unknown dtype"),
        (("--ranks-per-node", "0"), "--ranks-per-node is 0"),
        (("--gradient-seconds", "-1"), "--gradient-seconds is -1"),
        (("--task", "toy", "--payload", "5,5"), "leave one out"),
        (("--set", "task.d_x=2"), "--set task.d_x=2 is for the options of a --task"),
        (("--set", "algorithm.compressor=zip"), "unknown compressor 'zip'"),
        (("--set", "algorithm.compresser=top-k"), "did you mean 'algorithm.compressor'"),
        (("--algorithm", "sun-dsbo-ed", "--set", "algorithm.compressor=top-k"), "ED, diverge"),
        (("--task", "toy", "--set", "run.seed=2"), "expected task.KEY=VALUE"),
        (("--topology", "rings"), "did you mean 'ring'"),
        (("--topology", "circulant"), "has options that must be given"),
        (("--csv", "/nowhere/a.csv"), "cannot write '/nowhere/a.csv'"),
        (("--csv", "a.h5"), "its suffix is '.h5', expected .csv"),
    ],
)
def test_predict_refuses_in_a_sentence(path, words, expected):
    base = ("--topology", "ring", "--agents", 4, "--model", path)
    with pytest.raises(UsageError) as caught:
        predicted(*base, *words)
    assert expected in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--sizes", "4,6"), "--sizes has 6 bytes: expected multiples of 4"),
        (("--sizes", "4,0"), "a message of --sizes is 0"),
        (("--sizes", "8,8"), "expected two sizes or more"),
        (("--repeats", "0"), "--repeats is 0"),
        (("--payload", "1,0"), "a length of --payload is 0"),
    ],
)
def test_bench_refuses_in_a_sentence_before_it_starts_mpi(words, expected):
    with pytest.raises(UsageError) as caught:
        CliRunner().invoke(bench_command, words, catch_exceptions=False)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("command", "words", "expected"),
    [
        (bench_command, ("--sizes", "4,five"), "got '4,five', expected whole numbers between"),
        (bench_command, ("--payload", "1,2,3"), "got '1,2,3', expected the lengths of x and y"),
        (predict.command, ("--agents", "4,x"), "got '4,x', expected whole numbers between"),
        (predict.command, ("--payload", "5"), "got '5', expected the lengths of x and y"),
    ],
)
def test_numbers_stand_between_commas(command, words, expected):
    refused = CliRunner().invoke(command, words)
    assert refused.exit_code == 2
    assert f"'{words[0]}': {expected}" in " ".join(refused.output.split())


def test_predict_needs_neither_mpi_nor_torch(path):
    words = ["--topology", "ring", "--agents", "100", "--model", str(path)]
    program = (
        "import sys\n"
        "from sundsbo_mpi.cli.predict import command\n"
        f"command({words!r}, standalone_mode=False)\n"
        "assert not {'torch', 'mpi4py', 'mpi4py.MPI'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
