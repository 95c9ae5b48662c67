"""``sundsbo-mpi report``: one page that holds what the run file holds, and loads nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.cbook import is_math_text
from matplotlib.text import Text
from measured_runs import configured, write
from synthetic_run import plan, row

from sundsbo_mpi.cli.report import command
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.pictures.figures import axis_label
from sundsbo_mpi.pictures.labels import plain
from sundsbo_mpi.report import data, network
from sundsbo_mpi.report.algorithm import described
from sundsbo_mpi.report.curves import families
from sundsbo_mpi.report.page import render
from sundsbo_mpi.runfile import Event, RunFile, read_run
from sundsbo_mpi.topology import SEQUENCES

COUNTS = np.array([[70, 30, 0], [20, 20, 60], [1, 2, 97]])
VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """What a page consists of; every element must be closed where HTML asks for it."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, words):
        if "style" not in self.open:
            self.words.append(words)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def run_with(path, events=(), rows=4, **changes):
    planned = plan(**changes)
    with contextlib.closing(RunFile.create(path, planned)) as run:
        for index in range(rows):
            run.append(row(index, planned))
        if events:
            run.note(events)
        run.finish("finished")
    return read_run(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    info = plan().agents_info | {"train_label_counts": COUNTS, "validation_label_counts": COUNTS}
    attributes = plan().attributes | {"notes": json.dumps(["a <b>bold</b> note"])}
    events = [Event(10, "resumed", "it went <i>on</i>")]
    path = tmp_path_factory.mktemp("run") / "a.h5"
    return run_with(path, events, agents_info=info, attributes=attributes)


@pytest.fixture(scope="module")
def text(run):
    return render(run)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_the_page_says_what_ran_and_what_came_of_it(page):
    for words in (
        "sun-dsbo-gt on hyper-cleaning, digits",
        "test accuracy (%)",
        "ring (n=3) [odd] name",
        "D^k = W (D^{k-1} + D̂^k - D̂^{k-1})",
        "communication rounds per iteration 2",
        "mpirun -n 3 sundsbo-mpi run --like",
        "step_x = 0.1",
        "node2",
        "70, 30, 0",
        "Open MPI v5.0.11",
    ):
        assert words in page.text


def test_how_to_run_again_says_what_the_page_does_not_hold(tmp_path):
    about = plan().attributes | {"topology_sha256": "abc12"}
    config = configured(topology__file="my ring.npz")

    def words(name, config):
        changed = about | {"config": json.dumps(config)}
        return Page(render(run_with(tmp_path / name, rows=0, attributes=changed))).text

    said = words("a b.h5", config)
    for part in (
        f"mpirun -n 3 sundsbo-mpi run --like '{tmp_path}/a b.h5'",
        "mpirun -n 3 sundsbo-mpi run --config run.toml",
        "does not hold the weights in 'my ring.npz', of which 'sundsbo-mpi topology check' tells "
        "the SHA-256 abc12",
        f"run --config run.toml --topology '{tmp_path}/a b.h5'",
        "and the data.",
    ):
        assert part in said
    assert "the task's own" not in said
    config["task"]["name"], config["algorithm"]["lazy"] = "own.py:Ridge", True
    said = words("c.h5", config)
    assert "of which (I + W)/2 has the SHA-256 abc12" in said
    assert "the task's own 'own.py'" in said


NAMES = (
    "a$b$",
    "loss_$x^{2}$",
    "c\\d_{e}",
    "é™中",
    "new\nline",
    "tab\tand\x1b",
    "_begins",
    "error_$p$",
    "error_$q$",
)


def test_names_of_all_kinds_are_drawn_as_they_are(tmp_path, drawn):
    run = run_with(tmp_path / "a.h5", task_metrics=NAMES)
    text = render(run)
    Page(text)
    labels = {t.get_text() for figure in drawn for t in figure.findobj(Text)}
    assert {*map(plain, map(axis_label, NAMES))} <= labels
    assert all(not is_math_text(label) for label in labels)
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        assert ElementTree.fromstring(svg) is not None
    for shown in (
        "a$b$",
        "loss $x^{2}$",
        "c\\d {e}",
        "é™中",
        r"new\nline",
        r"tab\tand\x1b",
        "error $q$",
    ):
        assert f">{shown}</text>" in text


def test_words_from_the_file_are_words_and_no_markup(page):
    assert "a <b>bold</b> note" in page.text
    assert "it went <i>on</i>" in page.text
    assert not page.all("i")


def test_nothing_is_loaded_and_nothing_is_run(text, page):
    assert not [tag for tag, _ in page.elements if tag in {"script", "link", "img", "iframe"}]
    for _, attributes in page.elements:
        for name in ("src", "href", "xlink:href", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:image/png;base64,"))
    style = re.findall(r"url\(([^)]*)\)|@import", text)
    assert all(target.startswith("#") for target in style)
    (policy,) = [a["content"] for a in page.all("meta") if "http-equiv" in a]
    assert policy.startswith("default-src 'none'")


def test_the_page_can_be_used_without_eyes(page):
    pictures = page.all("svg")
    assert len(pictures) > 10
    assert all(p["role"] == "img" and len(p["aria-label"]) > 20 for p in pictures)
    assert "from 80.14 to 83.14" in "".join(p["aria-label"] for p in pictures)
    assert len(page.all("caption")) == len(page.all("table")) > 4
    assert all(heading["scope"] in ("col", "row") for heading in page.all("th"))
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(names)) == len(names)
    (links,) = [{a["href"][1:] for a in page.all("a")}]
    assert links <= set(names)
    assert page.all("html") == [{"lang": "en"}]


def test_pictures_refer_to_their_own_parts_alone(text):
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        own = set(re.findall(r'\bid="([^"]*)"', svg))
        used = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)
        assert {one or other for one, other in used} <= own
    assert "#102030" not in text  # the stand-in for the colour of the text


def test_without_evaluations_classes_and_a_known_method(tmp_path):
    about = plan().attributes | {"algorithm": "gone"}
    empty = run_with(tmp_path / "a.h5", rows=0, attributes=about)
    words = Page(render(empty)).text
    assert "No evaluation has been written yet" in words
    assert "says nothing about classes" in words
    assert "does not know the method" in words
    few = {"task_metrics": ("loss",), "variables": {"x": 2}, "attributes": {}}
    assert Page(render(run_with(tmp_path / "b.h5", rows=1, **few)))


def test_a_file_that_says_odd_things_still_makes_a_page(tmp_path):
    odd = {"iterations": "many", "lambda_min": "low", "topology_recipe": "{}", "notes": "["}
    config = json.dumps({"algorithm": "sun-dsbo-gt", "odd": 1})
    about = {**plan().attributes, **odd, "config": config}
    few = {"task_metrics": ("loss",), "variables": {"x": 2}}
    run = run_with(tmp_path / "a.h5", rows=1, attributes=about, **few)
    assert "sun-dsbo-gt on hyper-cleaning" in Page(render(run)).text
    run = run_with(tmp_path / "b.h5", edges=np.array([[0, 7], [-1, 0]]), **few)
    assert network.network(run) is None
    assert network.bytes_picture(run) is None


def test_metrics_of_a_kind_share_their_panels(run):
    found = families(run)
    assert found["test_loss"] == ["test_loss"]
    assert found["test_accuracy"] == ["test_accuracy"]
    assert found["consensus error"] == ["consensus/x", "consensus/y", "consensus/theta"]
    more = dataclasses.replace(run, task={**run.task, "train_loss": run.task["test_loss"]})
    assert families(more)["loss"] == ["test_loss", "train_loss"]


def test_label_counts_are_drawn_and_written(run, drawn):
    pictures = data.histograms(run)
    assert [name for name, _ in pictures] == ["training samples", "validation samples"]
    (axes,) = drawn[0].axes
    np.testing.assert_array_equal(axes.images[0].get_array(), COUNTS)
    assert [text.get_text() for text in axes.texts] == list(map(str, COUNTS.ravel()))
    assert data.agents_table(run).rows[1][-1] == "20, 20, 60"


def test_bytes_per_edge_and_iteration(tmp_path, drawn):
    run = read_run(write(tmp_path / "a.h5"))
    assert network.bytes_per_iteration(run).tolist() == [0.7, 0.7]
    assert network.busiest(run).rows[0] == ("1 to 0", "15 B", "0.7 B")
    network.bytes_picture(run)
    table = np.asarray(drawn[0].axes[0].images[0].get_array().filled(np.nan))
    assert table[0, 1] == table[1, 0] == 0.7
    assert np.isnan(table).sum() == 7


def test_the_network_that_was_mixed_with(tmp_path):
    run = run_with(tmp_path / "a.h5")
    found = network.network(run)
    assert (found.symmetric, found.matrices) == (True, 1)
    np.testing.assert_allclose(found.mean.toarray(), np.full((3, 3), 1 / 3))
    turn = np.roll(np.eye(3), 1, axis=1)
    two = run_with(tmp_path / "b.h5", weights=np.vstack([np.eye(3), turn]))
    found = network.network(two)
    assert (found.symmetric, found.matrices) == (False, 2)
    np.testing.assert_allclose(found.mean.toarray(), (np.eye(3) + turn) / 2)
    assert ("neighbours", "2") in network.description(run, found)


def test_a_network_that_is_drawn_for_ever(tmp_path):
    random = SEQUENCES["random"](3, neighbours=2)
    about = plan().attributes | {"topology_recipe": json.dumps(dict(random.recipe))}
    run = run_with(tmp_path / "a.h5", attributes=about, weights=np.empty((0, 3)))
    found = network.network(run)
    np.testing.assert_allclose(found.mean.toarray(), np.full((3, 3), 1 / 3))
    lost = dataclasses.replace(run, attributes=plan().attributes)
    assert network.network(lost) is None


def test_the_price_is_that_of_the_options(tmp_path):
    twice = configured(algorithm__gossip_steps=2)
    price = dict(described(read_run(write(tmp_path / "a.h5", config=twice))).price)
    assert price["communication rounds per iteration"] == "4"
    assert price["oracles per iteration"] == "1 gradients of f, 2 gradients of g"
    odd = configured(algorithm__wire="fp3")
    assert described(read_run(write(tmp_path / "b.h5", config=odd))).price == []


def report(*arguments):
    done = CliRunner().invoke(command, [str(word) for word in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_files_are_kept_unless_told_otherwise(tmp_path, run, monkeypatch):
    monkeypatch.setattr("sundsbo_mpi.report.page.render", lambda _run: "<!DOCTYPE html>")
    page = tmp_path / "page.html"
    assert report(run.path, "-o", page) == f"wrote {page}\n"
    page.write_text("precious")
    with pytest.raises(UsageError, match="exists already: pass --overwrite"):
        report(run.path, "-o", page)
    assert page.read_text() == "precious"
    report(run.path, "-o", page, "--overwrite")
    assert page.read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(UsageError, match=r"suffix is '\.pdf', expected \.html"):
        report(run.path, "-o", tmp_path / "page.pdf")
    with pytest.raises(UsageError, match=r"cannot write .* No such file or directory; choose"):
        report(run.path, "-o", tmp_path / "gone" / "page.html")


def test_without_matplotlib(tmp_path, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"pip install 'sundsbo-mpi\[plot\]'"):
        report(run.path, "-o", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
