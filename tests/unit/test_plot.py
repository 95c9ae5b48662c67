"""``sundsbo-mpi plot``: which metric, which labels, and a picture that holds the rows."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib import rcParams
from matplotlib.cbook import is_math_text
from matplotlib.text import Text
from measured_runs import write
from synthetic_run import CONFIG, plan, row

from sundsbo_mpi.cli.plot import command
from sundsbo_mpi.compare.curves import labels
from sundsbo_mpi.compare.groups import apart, group
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.metric_names import choose_metric, choose_metrics
from sundsbo_mpi.pictures.figures import style
from sundsbo_mpi.pictures.labels import plain
from sundsbo_mpi.pictures.mean_curves import mean_curve
from sundsbo_mpi.runfile import RunFile, read_run


def make(path, rows=4, **changes):
    planned = plan(**changes)
    with contextlib.closing(RunFile.create(path, planned)) as run:
        for index in range(rows):
            run.append(row(index, planned))
    return read_run(path)


def plot(*arguments):
    done = CliRunner().invoke(command, [str(word) for word in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_three_panels_hold_the_rows(tmp_path, drawn):
    data = make(tmp_path / "a.h5")
    assert plot(tmp_path / "a.h5", "-o", tmp_path / "a.png") == f"wrote {tmp_path / 'a.png'}\n"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    (figure,) = drawn
    assert len(figure.axes) == 3
    sent = data.agents["bytes_payload"].mean(axis=1)
    words = ("iterations", "seconds", "bytes")
    for axes, ticks, word in zip(
        figure.axes, (data.iteration, data.elapsed_s, sent), words, strict=True
    ):
        averaged, local = axes.get_lines()
        np.testing.assert_array_equal(averaged.get_xdata(), ticks)
        np.testing.assert_array_equal(averaged.get_ydata(), data.task["test_accuracy"])
        np.testing.assert_array_equal(local.get_ydata(), data.task["test_accuracy_local"])
        assert word in axes.get_xlabel()
    assert figure.axes[0].get_ylabel() == "test accuracy (%)"
    assert figure.axes[0].get_yscale() == "linear"


def test_a_metric_of_choice(tmp_path, drawn):
    data = make(tmp_path / "a.h5")
    plot(tmp_path / "a.h5", "-o", tmp_path / "a.png", "--metric", "consensus/y")
    (line,) = drawn[0].axes[0].get_lines()
    np.testing.assert_array_equal(line.get_ydata(), data.consensus["y"])
    assert drawn[0].axes[0].get_yscale() == "log"
    with pytest.raises(UsageError, match=r"'test_acuracy': did you mean 'test_accuracy'"):
        plot(tmp_path / "a.h5", "-o", tmp_path / "b.png", "--metric", "test_acuracy")


@pytest.mark.parametrize(
    ("metrics", "chosen"),
    [
        (("test_loss", "test_accuracy_local", "test_accuracy"), "test_accuracy"),
        (("error_x_local", "test_loss", "error_x"), "error_x"),
        (("weight", "upper_loss"), "upper_loss"),
        (("weight",), "weight"),
    ],
)
def test_the_default_metric(tmp_path, metrics, chosen):
    assert choose_metric([make(tmp_path / "a.h5", task_metrics=metrics)], None) == chosen


def test_runs_without_a_common_metric(tmp_path):
    runs = [make(tmp_path / f"{name}.h5", task_metrics=(name,)) for name in ("one", "two")]
    with pytest.raises(UsageError, match="no task metric in common"):
        choose_metric(runs, None)
    assert choose_metric(runs, "consensus/x") == "consensus/x"


def test_a_run_without_rows(tmp_path):
    make(tmp_path / "a.h5", rows=0)
    with pytest.raises(UsageError, match="no evaluation yet"):
        plot(tmp_path / "a.h5", "-o", tmp_path / "a.png")


def relabelled(tmp_path, *changes):
    """Runs whose configuration differs from the synthetic one by each of the changes."""
    data = make(tmp_path / "stem.h5")
    runs = []
    for number, change in enumerate(changes):
        config = {table: dict(options) for table, options in CONFIG.items()}
        for key, value in change.items():
            table, _, option = key.partition(".")
            config.setdefault(table, {})[option] = value
        attributes = {**data.attributes, "algorithm": config["algorithm"]["name"]}
        path = data.path.with_name(f"stem{number}.h5")
        runs.append(dataclasses.replace(data, config=config, attributes=attributes, path=path))
    return runs


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            [{"algorithm.name": "sun-dsbo-se"}, {"algorithm.name": "sun-dsbo-gt"}],
            ["sun-dsbo-se", "sun-dsbo-gt"],
        ),
        (
            [{"task.heterogeneity": 0.1}, {"task.heterogeneity": 1.0}],
            ["sun-dsbo-gt, heterogeneity 0.1", "sun-dsbo-gt, heterogeneity 1.0"],
        ),
        ([{}, {"output.file": "b"}], ["sun-dsbo-gt (stem0)", "sun-dsbo-gt (stem1)"]),
        (
            [{f"task.option{i}": 0 for i in range(4)}, {f"task.option{i}": 1 for i in range(4)}],
            ["sun-dsbo-gt (stem0)", "sun-dsbo-gt (stem1)"],
        ),
        (
            [
                {f"task.option{i}": 0 for i in range(3)} | {"algorithm.step_x": 0.1},
                {f"task.option{i}": 1 for i in range(3)} | {"algorithm.step_x": 0.2},
            ],
            ["sun-dsbo-gt, step_x 0.1", "sun-dsbo-gt, step_x 0.2"],
        ),
        ([{}], ["sun-dsbo-gt"]),
    ],
)
def test_labels_say_what_sets_the_runs_apart(tmp_path, changes, expected):
    assert labels(group(relabelled(tmp_path, *changes))) == expected


def seeds(tmp_path, *curves):
    """Runs that differ in their seed, with a metric's values, payload and seconds of their own."""
    return [
        write(
            tmp_path / f"{seed}.h5",
            curve,
            seed=seed,
            seconds=0.1 * (1 + seed),
            payload=[1000 * (1 + seed)] * 3,
        )
        for seed, curve in enumerate(curves)
    ]


ODD = "$x_{1}^{2}$ \\frac{ é%#&"


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_names_are_no_formulas(tmp_path, drawn, monkeypatch, suffix):
    """Neither where the names hold what would be one, nor where TeX is to set all texts."""
    monkeypatch.setitem(rcParams, "text.usetex", True)
    for stem in ("$a$", "$b$"):
        make(tmp_path / f"{stem}.h5", task_metrics=(ODD,))
    output = tmp_path / f"a.{suffix}"
    plot(tmp_path / "$a$.h5", tmp_path / "$b$.h5", "--apart", "--metric", ODD, "-o", output)
    assert drawn[0].axes[0].get_ylabel() == plain(ODD.replace("_", " "))
    texts = drawn[0].findobj(Text)
    assert {*("sun-dsbo-gt ($a$)", "sun-dsbo-gt ($b$)")} <= {
        text.get_text().replace("\\$", "$") for text in texts
    }
    assert not [text for text in texts if is_math_text(text.get_text())]


def test_what_is_drawn_is_what_is_written():
    for words in ("$", "$$", "$a$", "\\$a\\$", "\\\\$a$", "a_b^c", "{}", "%#&~"):
        text = Text(text=plain(words))
        assert text._preprocess_math(text.get_text()) == (words, False)
    assert plain("a\nb\x1b") == "a\\nb\\x1b"


def test_seeds_are_one_curve_with_a_band(tmp_path, drawn):
    paths = seeds(tmp_path, (10.0, 50.0, 80.0), (30.0, 60.0, 80.0), (20.0, 70.0, 80.0))
    plot(*paths, "-o", tmp_path / "a.png")
    axes = drawn[0].axes
    mean = [20.0, 60.0, 80.0]
    for panel, ticks in zip(axes, ([0, 10, 20], [7, 9, 11], [7, 20007, 40007]), strict=True):
        averaged, local = panel.get_lines()
        np.testing.assert_allclose(averaged.get_xdata(), ticks)
        np.testing.assert_allclose(averaged.get_ydata(), mean)
        np.testing.assert_allclose(local.get_ydata(), np.array(mean) - 1)
        (band,) = panel.collections
        low, high = band.get_paths()[0].vertices[:, 1].min(), band.get_paths()[0].vertices
        assert low == pytest.approx(10.0)  # the sample deviation of 10, 30 and 20 is 10
        np.testing.assert_allclose(high[high[:, 0] == ticks[1], 1], [50.0, 70.0])
    (legend,) = drawn[0].legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[0] == "sun-dsbo-gt, 3 seeds"
    assert names[-1] == "band: standard deviation over seeds"


def test_seeds_apart(tmp_path, drawn):
    paths = seeds(tmp_path, (10.0, 50.0, 80.0), (30.0, 60.0, 80.0))
    plot(*paths, "-o", tmp_path / "a.png", "--apart")
    names = [text.get_text() for text in drawn[0].legends[0].get_texts()]
    assert names[:2] == ["sun-dsbo-gt, seed 0", "sun-dsbo-gt, seed 1"]
    assert len(drawn[0].axes[0].get_lines()) == 4
    assert [one.label for one in apart([read_run(path) for path in paths])] == [
        "1 sun-dsbo-gt, seed 0",
        "2 sun-dsbo-gt, seed 1",
    ]


def test_seeds_count_where_all_were_evaluated(tmp_path):
    long, short = seeds(tmp_path, (10.0, 50.0, 80.0), (30.0, 60.0))
    curve = mean_curve([read_run(long), read_run(short)], "test_accuracy")
    assert curve.along[0].tolist() == [0, 10]
    assert curve.mean.tolist() == [20.0, 55.0]
    other = write(tmp_path / "other.h5", (30.0, 70.0, 90.0), every=20)  # at 0, 20 and 40
    curve = mean_curve([read_run(long), read_run(other)], "test_accuracy")
    assert curve.along[0].tolist() == [0, 20]
    assert curve.mean.tolist() == [20.0, 75.0]


def test_several_metrics_are_rows(tmp_path, drawn):
    data = make(tmp_path / "a.h5")
    wish = ("--metric", "consensus/*", "--metric", "*loss", "--metric", "test_accuracy")
    plot(tmp_path / "a.h5", "-o", tmp_path / "a.svg", *wish)
    axes = drawn[0].axes
    assert len(axes) == 15
    assert [panel.get_ylabel() for panel in axes[::3]] == [
        *(f"consensus error of {v}" for v in data.consensus),
        "test loss",
        "test accuracy (%)",
    ]
    assert [bool(panel.get_xlabel()) for panel in axes] == [False] * 12 + [True] * 3
    np.testing.assert_array_equal(axes[12].get_lines()[0].get_ydata(), data.task["test_accuracy"])


def test_patterns_leave_the_dashed_curves_out(tmp_path):
    run = make(tmp_path / "a.h5")
    assert choose_metrics([run], ["test*", "*loss"]) == ["test_loss", "test_accuracy"]
    assert choose_metrics([run], ["test_accuracy_local"]) == ["test_accuracy_local"]
    assert choose_metrics([run], []) == ["test_accuracy"]
    with pytest.raises(UsageError, match=r"unknown metric of all these runs 'none\*'"):
        choose_metrics([run], ["test*", "none*"])


def test_runs_keep_apart_in_the_legend(tmp_path, drawn):
    paths = []
    for algorithm in ("sun-dsbo-se", "sun-dsbo-gt", "sun-dsbo-ed"):
        paths.append(tmp_path / f"{algorithm}.h5")
        attributes = plan().attributes | {
            "algorithm": algorithm,
            "config": json.dumps({"algorithm": {"name": algorithm}}),
        }
        make(paths[-1], attributes=attributes)
    plot(*paths, "-o", tmp_path / "a.png")
    (legend,) = drawn[0].legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:3] == ["sun-dsbo-se", "sun-dsbo-gt", "sun-dsbo-ed"]
    lines = drawn[0].axes[0].get_lines()[::2]
    assert len({line.get_color() for line in lines}) == 3
    assert len({line.get_marker() for line in lines}) == 3


def test_curves_differ_in_colour_or_marker():
    looks = [(style(number)["color"], style(number)["marker"]) for number in range(56)]
    assert len(set(looks)) == 56
    for one, other in pairwise(looks):
        assert one[0] != other[0]
        assert one[1] != other[1]


def test_without_matplotlib(tmp_path, monkeypatch):
    make(tmp_path / "a.h5")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"pip install 'sundsbo-mpi\[plot\]'"):
        plot(tmp_path / "a.h5", "-o", tmp_path / "a.png")


@pytest.mark.parametrize("name", ["missing/a.png", "a.gif2", "a", ".", "folder.png"])
def test_a_picture_that_cannot_be_saved(tmp_path, name):
    make(tmp_path / "a.h5")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "a.png").write_bytes(b"precious")
    with pytest.raises(UsageError, match=r"cannot save .*; c"):
        plot(tmp_path / "a.h5", "-o", tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == b"precious"
