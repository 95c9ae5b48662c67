"""``sundsbo-mpi compare``: tables, CSV and picture of runs, and what is refused."""

from __future__ import annotations

import csv
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from measured_benches import bench
from measured_runs import configured, without, write
from printed import line

from sundsbo_mpi.bench.file import write_bench
from sundsbo_mpi.cli.compare import command
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.pictures.figures import COLOURS
from sundsbo_mpi.runfile.schema import LATER_COSTS


def compare(*arguments):
    words = [str(word) for word in arguments]
    done = CliRunner().invoke(command, words, env={"COLUMNS": "120"}, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


@pytest.fixture
def files(tmp_path):
    """Two seeds of one method, and another that is slower and sends more."""
    slow = configured(algorithm__name="sun-dsbo-ed")
    return [
        write(tmp_path / "a0.h5", (10.0, 70.0, 80.0)),
        write(tmp_path / "a1.h5", (10.0, 60.0, 82.0), seed=1, seconds=0.3),
        without(
            write(
                tmp_path / "b.h5", (10.0, 60.0, 81.0), seconds=0.5, payload=[3000] * 3, config=slow
            ),
            *LATER_COSTS,
        ),
    ]


def test_the_tables(files):
    text = compare(*files)
    assert line(text, "1 sun-dsbo-gt").split()[-5:-1] == ["3", "2", "0,", "1"]
    assert line(text, "time (ms)") == "time (ms) 200 ± 141 500"
    assert line(text, "payload bytes") == "payload bytes (kB) 1 3"
    assert line(text, "network bytes") == "network bytes (B) 250 750"
    assert line(text, "control bytes") == "control bytes (B) 0 –"
    assert line(text, "gradient") == "gradient (ms) 30 30"
    assert line(text, "post") == "post (µs) 0 –"
    assert line(text, "evaluation") == "evaluation, beside it (ms) 50 50"
    assert "at the end, and what it takes to at least 80" in text
    assert line(text, "averaged model") == "averaged model 81 ± 1.4 81"
    assert line(text, "agents' own models") == "agents' own models 80 ± 1.4 80"
    assert line(text, "runs that reach it") == "runs that reach it 2 of 2 1 of 1"
    assert line(text, "time to it") == "time to it (s) 11 ± 2.8 17"
    assert line(text, "algorithm.name") == "algorithm.name sun-dsbo-gt sun-dsbo-ed"
    assert "scaling" not in text
    assert "warning: the seeds differ (1: 0, 1; 2: 0)" in text


def test_a_target_that_some_do_not_reach(files):
    text = compare(*files, "--target", "81.5", "--metric", "test_accuracy")
    assert line(text, "runs that reach it") == "runs that reach it 1 of 2 0 of 1"
    assert line(text, "iterations to it") == "iterations to it 20 –"


def test_scaling_is_shown(tmp_path):
    files = [
        write(
            tmp_path / f"{n}.h5",
            seconds=n / 10,
            payload=[10] * n,
            gradient=[0.01] * n,
            hosts=["a"] * n,
        )
        for n in (4, 2)
    ]
    alone = write(tmp_path / "alone.h5", config=configured(algorithm__name="sun-dsbo-ed"))
    text = compare(*files, alone, "--csv", tmp_path / "a.csv")
    assert line(text, "efficiency") == "efficiency 1 0.5"
    assert line(text, "1 sun-dsbo-gt, agents 4")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["agents"] for row in rows] == ["4", "2", "3"]
    assert [row["scaling_family"] for row in rows] == ["1", "1", ""]
    assert [row["efficiency"] for row in rows] == ["0.5", "1.0", ""]


def test_csv_has_a_line_per_run(files, tmp_path):
    assert f"wrote {tmp_path / 'a.csv'}" in compare(*files, "--csv", tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [str(path) for path in files]
    assert [row["group"][0] for row in rows] == ["1", "1", "2"]
    np.testing.assert_allclose([float(row["s_per_iteration"]) for row in rows], [0.1, 0.3, 0.5])
    assert [float(row["payload_bytes_per_iteration"]) for row in rows] == [1000, 1000, 3000]
    assert [row["control_bytes_per_iteration"] for row in rows] == ["0.0", "0.0", ""]
    assert [float(row["iterations_to_target"]) for row in rows] == [20, 20, 20]
    assert [row["algorithm.name"] for row in rows] == ["sun-dsbo-gt"] * 2 + ["sun-dsbo-ed"]
    assert "output.file" not in rows[0]


def test_the_picture_holds_means_and_the_time_split(files, tmp_path, drawn):
    compare(*files, "--png", tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    *panels, bars = drawn[0].axes
    assert len(panels) == 3
    ticks = ([0, 10, 20], [7, 9, 11], [7, 10007, 20007])
    for axes, along in zip(panels, ticks, strict=True):
        target, first, second = axes.get_lines()
        assert target.get_ydata()[0] == 80
        np.testing.assert_allclose(first.get_xdata(), along)
        np.testing.assert_allclose(first.get_ydata(), [10, 65, 81])
        np.testing.assert_allclose(second.get_ydata(), [10, 60, 81])
        assert (first.get_color(), second.get_color()) == COLOURS[:2]
    widths = {c.get_label(): [bar.get_width() for bar in c] for c in bars.containers}
    np.testing.assert_allclose(widths["gradient"], [30, 30])
    np.testing.assert_allclose(widths["wait"], [40, 40])
    np.testing.assert_allclose(widths["evaluation"], [50, 50])
    np.testing.assert_allclose(widths["other"], [110, 410])
    assert "post" not in widths
    labels = [label.get_text() for label in bars.get_yticklabels()]
    assert labels == ["1 sun-dsbo-gt", "2 sun-dsbo-ed"]


def test_the_picture_shows_the_scaling(tmp_path, drawn):
    """Two methods, one of them on two topologies of four agents; a third has one size only."""
    ed = configured(algorithm__name="sun-dsbo-ed")
    sizes = [(2, 0.2, "a", None), (4, 0.5, "b", None), (4, 0.4, "c", None), (8, 0.8, "d", None)]
    sizes += [(2, 0.1, "e", ed), (4, 0.1, "f", ed)]
    sizes += [(2, 0.3, "g", configured(algorithm__name="sun-dsbo-se"))]
    files = [
        write(
            tmp_path / f"{name}.h5",
            seconds=seconds,
            payload=[10] * n,
            gradient=[0.01] * n,
            hosts=["x"] * n,
            config=config,
            topology_sha256=name,
        )
        for n, seconds, name, config in sizes
    ]
    compare(*files, "--png", tmp_path / "a.png")
    *_, seconds, efficiency = drawn[0].axes
    assert (seconds.get_xlabel(), seconds.get_ylabel()) == ("agents", "ms per iteration")
    assert efficiency.get_ylabel() == "efficiency"
    points, fastest, of_ed, _ = (line.get_xydata() for line in seconds.get_lines())
    np.testing.assert_allclose(
        points[points[:, 1].argsort()], [(2, 200), (4, 400), (4, 500), (8, 800)]
    )
    np.testing.assert_allclose(fastest, [(2, 200), (4, 400), (8, 800)])
    np.testing.assert_allclose(of_ed, [(2, 100), (4, 100)])
    _, gt, _, ed, one = (line.get_ydata() for line in efficiency.get_lines())
    np.testing.assert_allclose(gt, [1, 0.5, 0.25])
    np.testing.assert_allclose(ed, [1, 1])
    assert list(one) == [1, 1]
    assert [tick.get_text() for tick in seconds.get_xticklabels()] == ["2", "4", "8"]
    (legend,) = seconds.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "1, 2, 3, 4 sun-dsbo-gt",
        "5, 6 sun-dsbo-ed",
    ]


def test_scaling_of_runs_that_were_hardly_begun_is_drawn_without_them(tmp_path, drawn):
    files = [
        write(tmp_path / f"{n}.h5", metric, payload=[10] * n, gradient=[0.01] * n, hosts=["x"] * n)
        for n, metric in ((2, (1.0, 2.0)), (4, (1.0,)))
    ]
    compare(*files, "--png", tmp_path / "a.png")
    *_, seconds, efficiency = drawn[0].axes
    for axes in (seconds, efficiency):
        assert [len(line.get_xdata()) for line in axes.get_lines()][:2] == [1, 1]


def test_a_picture_without_a_common_metric_shows_the_time_split(tmp_path, drawn):
    files = [write(tmp_path / f"{name}.h5", name=name) for name in ("speed", "loss")]
    text = compare(*files, "--png", tmp_path / "a.png")
    assert "warning: the runs have no metric in common of which it is known" in text
    (bars,) = drawn[0].axes
    assert bars.get_xlabel().startswith("ms per iteration")


def test_a_picture_of_runs_that_were_hardly_begun(tmp_path, drawn):
    files = [write(tmp_path / "a.h5", (), status="running"), write(tmp_path / "b.h5", (1.0,))]
    text = compare(*files, "--png", tmp_path / "a.png")
    assert line(text, "time (µs)") == "time (µs) – –"
    (*_, bars) = drawn[0].axes
    assert [note.get_text().strip() for note in bars.texts] == ["not measured"] * 2


def test_one_run_alone(files):
    text = compare(files[0])
    assert "where it differs" not in text
    assert "warning" not in text
    assert line(text, "time (ms)") == "time (ms) 100"


def test_a_run_given_twice_counts_once(files, tmp_path):
    copy = tmp_path / "copy.h5"
    copy.write_bytes(files[0].read_bytes())
    text = compare(files[0], files[0], copy)
    assert text.count("it counts once.") == 2
    assert line(text, "time (ms)") == "time (ms) 100"


def test_two_runs_without_rows_are_not_the_same_run(tmp_path):
    files = [write(tmp_path / f"{name}.h5", (), status="running") for name in "ab"]
    assert "counts once" not in compare(*files)


def test_every_file_that_cannot_be_read_has_its_sentence(files, tmp_path):
    cut = tmp_path / "cut.h5"
    cut.write_bytes(files[0].read_bytes()[:3000])
    with pytest.raises(UsageError) as refused:
        compare(files[0], cut, tmp_path / "missing.h5", __file__)
    first, second, third = str(refused.value).splitlines()
    assert first.startswith(f"'{cut}' cannot be read as an HDF5 file")
    assert second.startswith(f"there is no run file '{tmp_path / 'missing.h5'}'")
    assert third.startswith(f"'{__file__}' cannot be read")


def test_runs_and_benches_are_not_compared(files, tmp_path):
    write_bench(tmp_path / "bench.h5", bench())
    with pytest.raises(UsageError, match="give runs only or benches only"):
        compare(files[0], tmp_path / "bench.h5")
    with pytest.raises(UsageError, match="benches have no metric"):
        compare(tmp_path / "bench.h5", "--target", "3")


@pytest.mark.parametrize("suffix", ["h5", "txt"])
def test_csv_does_not_replace_a_run_file(files, suffix):
    before = files[0].read_bytes()
    with pytest.raises(UsageError, match=r"expected \.csv"):
        compare(files[0], "--csv", files[0].with_suffix(f".{suffix}"))
    with pytest.raises(UsageError, match=r"expected one of \.png"):
        compare(files[0], "--png", files[0])
    assert files[0].read_bytes() == before


def test_csv_that_cannot_be_written(files, tmp_path):
    with pytest.raises(UsageError, match=r"cannot write .*No such file or directory; choose"):
        compare(files[0], "--csv", tmp_path / "missing" / "a.csv")


def test_the_tables_fit_into_eighty_columns_whole(files):
    done = CliRunner().invoke(command, [str(f) for f in files], env={"COLUMNS": "80"})
    assert max(map(len, done.output.splitlines())) <= 80
    assert "…" not in done.output


def test_compare_imports_neither_mpi_nor_torch(files):
    code = (
        "import sys; from sundsbo_mpi.cli.compare import command\n"
        "command(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'mpi4py', 'torch', 'matplotlib', 'sklearn', 'networkx'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    words = [sys.executable, "-c", code, *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
