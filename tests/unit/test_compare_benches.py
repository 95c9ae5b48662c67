"""Comparing benches: times by size, links, checked rounds, and where they ran."""

from __future__ import annotations

import csv
import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from measured_benches import SIZES, bench

from sundsbo_mpi.algorithms.messages import Sizes
from sundsbo_mpi.bench.file import write_bench
from sundsbo_mpi.bench.fitting import checked_messages
from sundsbo_mpi.bench.record import Check, Sent
from sundsbo_mpi.cli.compare import command
from sundsbo_mpi.comm.transports import TRANSPORTS
from sundsbo_mpi.errors import UsageError


@pytest.fixture
def compare(tmp_path):
    """Write benches and compare them."""

    def compare(*benches, flags=(), width=120):
        files = [str(tmp_path / f"{number}.h5") for number in range(len(benches))]
        for path, content in zip(files, benches, strict=True):
            write_bench(Path(path), content, overwrite=True)
        words = [*files, *map(str, flags)]
        env = {"COLUMNS": str(width)}
        done = CliRunner().invoke(command, words, env=env, catch_exceptions=False)
        assert done.exit_code == 0
        return done.output

    return compare


def lines(text, start):
    found = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in found if line.startswith(start)]


def checked(text, names):
    """Return the lines below the names of methods that send the same."""
    found = [" ".join(line.split()) for line in text.splitlines()]
    below = found[found.index(names) + 1 :]
    return list(itertools.takewhile(lambda line: ", host (" in line, below))


def test_times_of_the_smallest_and_the_largest_message(compare):
    text = compare(bench(), bench(2.0))
    assert "messages of 4 bytes" in text
    assert "messages of 4000000 bytes" in text
    assert "messages of 4000 bytes" not in text
    assert lines(text, "round, auto, host, all") == [
        "round, auto, host, all (µs) 1.506 3.012",
        "round, auto, host, all (ms) 6.002 12",
    ]
    assert lines(text, "memcpy, host") == [
        "memcpy, host (µs) 0.3765 0.753",
        "memcpy, host (ms) 1.5 3.001",
    ]


def test_pairs_and_links_by_class(compare):
    text = compare(bench(), bench(2.0))
    assert lines(text, "latency, same node") == ["latency, same node (µs) 2 4"]
    assert lines(text, "latency, other node") == ["latency, other node (µs) 40 80"]
    assert lines(text, "bandwidth, same node") == ["bandwidth, same node (GB/s) 6 3"]
    assert lines(text, "alpha, auto, host, other node") == [
        "alpha, auto, host, other node (µs) 20 40"
    ]
    assert lines(text, "1 / beta, auto, host, same") == [
        "1 / beta, auto, host, same node (GB/s) 1 1"
    ]
    assert lines(text, "1 / beta, auto, host, other")[0].endswith("– –")
    assert lines(text, "largest error, auto, host, same")[0].endswith("(%) 5 5")


def test_an_error_of_the_fit_is_told_where_the_sizes_do_not_fix_a_line(compare, tmp_path):
    """With two sizes a line meets both, but for one that would fall."""
    two = bench(2.0, sizes=SIZES[:2])
    text = compare(bench(), two, flags=("--csv", tmp_path / "a.csv"))
    assert lines(text, "largest error, auto, host, same")[0].endswith("(%) 5 –")
    assert lines(text, "largest error, auto, host, other")[0].endswith("(%) 10 10")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["what"] == "model"]
    assert [row["largest_error"] for row in rows] == ["0.1", "0.05", "0.1", ""]


def test_measured_beside_predicted_rounds(compare):
    other = dataclasses.replace(bench(2.0), methods=bench().methods[::-1])
    text = compare(bench(), other)
    assert checked(text, "sun-dsbo-se") == ["auto, host (ms) 11 (0.9091) 24 (1.667)"]
    assert checked(text, "sun-dsbo-gt") == ["auto, host (ms) 24 (0.8333) 11 (1.818)"]


def test_methods_that_send_the_same_stand_together_as_far_as_all_benches_have_them(compare):
    checks = {("auto", "host"): Check(np.array([0.01]), np.array([0.02]))}
    alike = (Sent.of([100], ["sun-dsbo-se", "d-soba", "sun-dsbo-ed"]),)
    other = dataclasses.replace(bench(2.0), methods=alike, checks=checks)
    text = compare(bench(), other, width=200)
    assert checked(text, "sun-dsbo-se") == ["auto, host (ms) 11 (0.9091) 20 (0.5)"]
    assert checked(text, "d-soba, sun-dsbo-ed") == ["auto, host (ms) – 20 (0.5)"]
    assert checked(text, "sun-dsbo-gt") == ["auto, host (ms) 24 (0.8333) –"]


def test_the_checks_of_all_methods_by_all_transports_are_legible(compare):
    """In a hundred columns every name stands once, unbroken, and every check on a line."""
    groups = checked_messages(Sizes(50_000, 238_510))
    alike = tuple(Sent.of(sent, names) for sent, names in groups.items())
    ones = np.ones(len(alike))
    checks = {(transport, "host"): Check(ones, ones) for transport in TRANSPORTS}
    both = [dataclasses.replace(bench(k), methods=alike, checks=checks) for k in (1.0, 2.0)]
    text = compare(*both, width=100)
    (_, shown) = text.split("rounds of an iteration")
    assert max(map(len, shown.splitlines())) <= 100
    words = shown.replace(",", " ").split()
    assert all(words.count(name) == 1 for names in groups.values() for name in names)
    for transport in TRANSPORTS:
        found = lines(shown, f"{transport}, host")
        assert found == [f"{transport}, host (s) 1 (1) 1 (1)"] * len(groups)


def test_what_only_one_of_them_has_is_a_dash(compare):
    fewer = dataclasses.replace(bench(), series={}, links={}, checks={})
    text = compare(bench(), fewer)
    assert lines(text, "round, auto, host, all")[0] == "round, auto, host, all (µs) 1.506 –"
    assert lines(text, "alpha, auto, host, same")[0].endswith("1 –")
    assert checked(text, "sun-dsbo-se") == ["auto, host (ms) 11 (0.9091) –"]


def test_settings_and_environment_where_they_differ(compare):
    other = bench(repeats=5, mpi_library="MPICH Version: 5.0.2\nlong", environment="{}")
    text = compare(bench(), other)
    assert lines(text, "repeats") == ["repeats 20 5"]
    assert lines(text, "MPI library") == ["MPI library Open MPI v5.0.11 MPICH Version: 5.0.2"]
    assert lines(text, "OMP_NUM_THREADS") == ["OMP_NUM_THREADS 1 –"]
    assert not lines(text, "torch")


def test_binding_and_cores_where_they_differ(compare):
    other = bench(2.0, binding=("0-7",) * 4)
    other.ranks["node_cores"] = np.array([64, 64, 8, 8])
    text = compare(bench(), other, width=200)
    assert lines(text, "binding of a rank") == ["binding of a rank 0 (2 ranks), 1 (2 ranks) 0-7"]
    assert lines(text, "logical processors of a node") == [
        "logical processors of a node 2 8 (2 ranks), 64 (2 ranks)"
    ]


def test_what_is_not_fair_is_said(compare):
    assert "warning" not in compare(bench(), bench(2.0))
    assert "in common are 4, 4000000 (bytes)" in compare(bench(), bench(2.0, sizes=(4, 4000000)))
    assert "in common are none" in compare(bench(), bench(2.0, sizes=(8,)))
    other = dataclasses.replace(bench(2.0), edges=bench().edges[:2])
    assert "warning: the networks differ" in compare(bench(), other)
    crowded = bench(2.0, binding=("0-1", "0,1", "3", "3"))
    assert "where 2 ranks of a node share 1 core: its times say little." in " ".join(
        compare(bench(), crowded).split()
    )
    assert "counts once" in compare(bench(), bench())


@pytest.fixture
def rows_of(compare, tmp_path):
    """Return the lines of the CSV of two benches, the second twice as slow, that are of a kind."""
    compare(bench(), bench(2.0), flags=("--csv", tmp_path / "a.csv"))
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["bench"] for row in rows] == ["1"] * (len(rows) // 2) + ["2"] * (len(rows) // 2)
    return lambda *kinds: [row for row in rows if row["what"] in kinds]


def filled(row):
    return {name for name, value in row.items() if value != ""} - {"bench", "file", "what"}


def test_csv_has_a_line_per_pair(rows_of):
    rows = rows_of("pair")
    assert all(
        filled(row) == {"links", "first", "second", "latency_s", "bytes_per_s"} for row in rows
    )
    assert [(row["first"], row["second"], row["links"]) for row in rows[:4]] == [
        *(("0", "1", "same node"), ("1", "2", "other node")),
        *(("2", "3", "same node"), ("0", "3", "other node")),
    ]
    factors = [1.0] * 4 + [2.0] * 4
    latency = factors * np.array([1e-6, 3e-5, 3e-6, 5e-5] * 2)
    np.testing.assert_allclose([float(row["latency_s"]) for row in rows], latency)
    rates = np.array([4e9, 1e9, 8e9, 3e9] * 2) / factors
    np.testing.assert_allclose([float(row["bytes_per_s"]) for row in rows], rates)


def test_csv_has_a_line_per_model(rows_of):
    rows = {(row["bench"], row["links"]): row for row in rows_of("model")}
    assert len(rows) == 4
    row = rows["2", "other node"]
    numbers = {"alpha_s": 4e-5, "beta_s_per_byte": 0.0, "largest_error": 0.1}
    assert {name: float(row[name]) for name in numbers} == pytest.approx(numbers)
    assert filled(row) == {"transport", "buffers", "links", *numbers}
    assert (row["transport"], row["buffers"]) == ("auto", "host")
    assert float(rows["1", "same node"]["beta_s_per_byte"]) == 1e-9


def test_csv_has_a_line_per_checked_method(compare, tmp_path):
    alike = (Sent.of([100], ["sun-dsbo-se", "d-soba"]), Sent.of([100, 60], ["sun-dsbo-ed-gt"]))
    flags = ("--csv", tmp_path / "a.csv")
    compare(dataclasses.replace(bench(), methods=alike), bench(2.0), flags=flags)
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["what"] == "check"]
    told = [(row["method"], row["rounds"], row["bytes_per_iteration"]) for row in rows]
    assert told == [
        *(("sun-dsbo-se", "1", "100"), ("d-soba", "1", "100"), ("sun-dsbo-ed-gt", "2", "160")),
        *(("sun-dsbo-se", "1", "100"), ("sun-dsbo-gt", "2", "200")),
    ]
    predicted = [float(row["predicted_s"]) for row in rows]
    np.testing.assert_allclose(predicted, [0.01, 0.01, 0.02, 0.02, 0.04])
    measured = [float(row["measured_s"]) for row in rows]
    np.testing.assert_allclose(measured, [0.011, 0.011, 0.024, 0.011, 0.024])
    assert {(row["transport"], row["buffers"], row["links"]) for row in rows} == {
        ("auto", "host", "all")
    }


def test_csv_has_a_line_per_series_and_size(rows_of):
    rows = rows_of("round", "memcpy")
    assert len(rows) == 2 * 3 * len(SIZES)
    (row,) = [
        row
        for row in rows
        if (row["bench"], row["what"], row["links"], row["message_bytes"])
        == ("2", "round", "all", "4000")
    ]
    assert float(row["median_s"]) == pytest.approx(1e-5)
    assert float(row["p95_s"]) == pytest.approx(2e-5)
    assert float(row["slowest_rank_s"]) == pytest.approx(1.5e-5)


def test_the_picture_has_a_panel_per_series(compare, tmp_path, monkeypatch):
    drawn = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda f, *a, **k: (drawn.append(f), save(f, *a, **k)))
    compare(bench(), bench(2.0), flags=("--png", tmp_path / "a.png"))
    shown = [axes for axes in drawn[0].axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == ["memcpy, host", "round, auto, host, all"]
    first, second = shown[1].get_lines()
    np.testing.assert_array_equal(first.get_xdata(), SIZES)
    np.testing.assert_allclose(second.get_ydata(), 2 * first.get_ydata())
    assert first.get_color() != second.get_color()


def test_a_picture_of_nothing(compare, tmp_path):
    empty = dataclasses.replace(bench(), series={})
    with pytest.raises(UsageError, match="have measured no series"):
        compare(empty, flags=("--png", tmp_path / "a.png"))


def test_the_tables_fit_into_eighty_columns_whole(compare):
    text = compare(bench(), bench(2.0), width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
