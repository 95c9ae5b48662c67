"""The notes of ``predict``, on a bench that says little about what is asked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from click.testing import CliRunner
from found_bench import found_bench, series

from sundsbo_mpi.bench.file import write_bench
from sundsbo_mpi.bench.message_sizes import LARGEST
from sundsbo_mpi.bench.model import OTHER, SAME, Fit
from sundsbo_mpi.bench.record import Check, Series
from sundsbo_mpi.cli.bench import SIZES as DEFAULT_SIZES
from sundsbo_mpi.cli.predict import command

LATENT = Fit(1e-5, 1e-10, 0.0)
"""A link over which a message of 10 kB costs a tenth more than an empty one."""


BOUND = ("0-1", "0-1", "0,2", "0,2")


def measured(sizes=(4, 1024, 65536), fitted=LATENT, bound=BOUND, took=(1e-3, 2e-3)):
    """Return a bench of two nodes with two ranks each."""
    made = found_bench()
    timed = Series(*(seconds[:1].repeat(len(sizes), axis=0) for seconds in series(1e-6)))
    return dataclasses.replace(
        made,
        sizes=np.array(sizes),
        ranks={**made.ranks, "binding": np.array(bound)},
        series=dict.fromkeys(made.series, timed),
        links={("auto", "host"): {SAME: fitted, OTHER: fitted}},
        checks={("auto", "host"): Check(np.array([1e-3, 2e-3]), np.array(took))},
    )


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """Predict from a bench, and return the lines on the standard error."""
    monkeypatch.chdir(tmp_path)

    def notes(bench, *words):
        write_bench(tmp_path / "a.h5", bench, overwrite=True)
        base = ["--model", "a.h5", *([] if "--topology" in words else ["--topology", "ring"])]
        done = CliRunner().invoke(command, base + [str(w) for w in words], catch_exceptions=False)
        assert done.exit_code == 0
        assert "note" not in done.stdout
        return done.stderr.splitlines()

    return notes


FOUR = ("--agents", 4)
SE = ("--algorithm", "sun-dsbo-se")
SMALL = ("--payload", "100,50", *SE)


def of_bytes(count):
    """Return words for a message of SE that is so long: x and twice y, in float32."""
    return ("--payload", f"{count // 4 - 2},1", *SE)


def test_nothing_is_said_where_there_is_nothing_to_say(notes):
    assert notes(measured(), *FOUR, *SMALL) == []


def test_the_default_sizes_of_bench_cover_the_default_messages_of_predict(notes):
    sizes = tuple(map(int, DEFAULT_SIZES.split(",")))
    assert notes(measured(sizes), *FOUR) == []


@pytest.mark.parametrize(
    ("bound", "shared"),
    [
        (("1", "1", "0", "2"), "2 ranks of a node share 1 core"),
        (("0-1", "0-1", "3", "3"), "2 ranks of a node share 1 core"),
        (("0", "1", "0", "1"), None),
        (("0-1", "0-1", "0-7", "0-7"), None),
        (("", "", "0-1", "0-1"), None),  # not known
    ],
)
def test_ranks_of_the_bench_that_shared_cores(notes, bound, shared):
    told = notes(measured(bound=bound), *FOUR, *SMALL)
    assert told == [
        f"note: 'a.h5' was timed where {shared}: links cost less where every rank has a core; run "
        "bench with no more ranks on a node than it has cores"
    ] * (shared is not None)


@pytest.mark.parametrize(
    ("took", "said"),
    [
        ((1.4e-3, 2.9e-3), None),
        ((1.4e-3, 3.1e-3), ("sun-dsbo-gt", "3.1 ms", "2 ms")),
        ((1.6e-3, 2e-3), ("sun-dsbo-se", "1.6 ms", "1 ms")),
        ((1.6e-3, 16e-3), ("sun-dsbo-gt", "16 ms", "2 ms")),
        ((1e-3, 1.4e-3), None),
        ((1e-3, 1e-3), ("sun-dsbo-gt", "1 ms", "2 ms")),
        ((0.0, float("nan")), None),
        ((float("nan"), 16e-3), ("sun-dsbo-gt", "16 ms", "2 ms")),
    ],
)
def test_a_bench_that_is_far_from_what_it_predicts_itself(notes, took, said):
    told = notes(measured(took=took), *FOUR, *SMALL)
    if said is None:
        assert told == []
    else:
        name, seconds, predicted = said
        assert told == [
            f"note: the rounds of {name} took 'a.h5' itself {seconds} where it predicts "
            f"{predicted}: what is predicted here may be as far off; run bench with more "
            "--repeats, on a quiet node with a core for every rank"
        ]


def test_only_the_checks_of_the_transport_that_is_asked_for_count(notes):
    bench = measured()
    way = ("neighbor", "host")
    far = Check(np.array([1e-3, 1e-3]), np.array([1.0, 1.0]))
    both = dataclasses.replace(
        bench,
        links={**bench.links, way: bench.links["auto", "host"]},
        checks={**bench.checks, way: far},
    )
    assert notes(both, *FOUR, *SMALL) == []
    assert len(notes(both, *FOUR, *SMALL, "--transport", "neighbor")) == 1
    unchecked = dataclasses.replace(both, checks={})
    assert notes(unchecked, *FOUR, *SMALL) == []


@pytest.mark.parametrize(
    ("agents", "asked", "most"),
    [(12, 3, 3), (4, 500, 4), ("4,6", 500, 6), (8, 2, None), (8, 1, None)],
)
def test_more_ranks_on_a_node_than_in_the_bench(notes, agents, asked, most):
    told = notes(measured(), "--agents", agents, "--ranks-per-node", asked, *SMALL)
    assert told == [
        f"note: {most} ranks on a node are predicted, 'a.h5' had at most 2: what more of them take "
        f"from one another is a guess; run bench with {most} on a node"
    ] * (most is not None)


def test_a_network_smaller_than_a_node_is_not_more_than_in_the_bench(notes):
    assert notes(measured(), "--agents", 2, "--ranks-per-node", 50, *SMALL) == []


def test_messages_longer_than_those_of_the_bench(notes):
    told = notes(measured(), *FOUR, *of_bytes(200_000))
    assert told == [
        "note: messages of up to 200 kB are predicted, 'a.h5' measured up to 65.5 kB: the cost of "
        "longer ones is extrapolated; run bench with 200000 among its --sizes"
    ]
    assert notes(measured((4, 65536, 200_000)), *FOUR, *of_bytes(200_000)) == []


def test_a_message_that_is_hardly_longer_is_as_good_as_measured(notes):
    assert notes(measured(), *FOUR, *of_bytes(72_088)) == []
    assert len(notes(measured(), *FOUR, *of_bytes(72_092))) == 1


def test_messages_are_asked_for_that_a_bench_can_measure(notes):
    odd = ("--payload", "99999,1", *SE, "--set", "algorithm.wire=bf16")  # 200 002 bytes
    (told,) = notes(measured(), *FOUR, *odd)
    assert told.endswith("run bench with 200004 among its --sizes")
    huge = of_bytes(3 * LARGEST)
    (told,) = notes(measured(), *FOUR, *huge)
    assert told.startswith("note: messages of up to 3.22 GB")
    assert told.endswith(f"run bench with {LARGEST} among its --sizes")
    (told,) = notes(measured((4, LARGEST)), *FOUR, *huge)
    assert told.endswith("the cost of longer ones is extrapolated, as a bench measures none")


def test_every_round_has_its_message(notes):
    """GT has two rounds, each with a message as long as that of SE."""
    words = ("--payload", "198,1", "--algorithm", "sun-dsbo-gt")
    (told,) = notes(measured((20_000, 65536)), *FOUR, *words)
    assert told.endswith("run bench with 800 among its --sizes")


def test_of_all_methods_the_longest_message_counts(notes):
    """Semi-ATC GT sends twice what SE sends, in one message."""
    names = ("sun-dsbo-se", "sun-dsbo-semi-gt", "sun-dsbo-gt")
    words = (word for name in names for word in ("--algorithm", name))
    (told,) = notes(measured(), *FOUR, "--payload", "19998,1", *words)
    assert told.endswith("run bench with 160000 among its --sizes")


def test_messages_shorter_than_those_of_the_bench(notes):
    told = notes(measured((20_000, 65536)), *FOUR, *of_bytes(800))
    assert told == [
        "note: messages down to 800 B are predicted, 'a.h5' measured none below 20 kB: the cost of "
        "shorter ones is extrapolated; run bench with 800 among its --sizes"
    ]
    assert notes(measured((800, 65536)), *FOUR, *of_bytes(800)) == []


@pytest.mark.parametrize(
    ("shortest", "fitted", "told"),
    [
        (1024, LATENT, 0),  # almost all of its cost is latency, which is then that of a shorter one
        (1024, Fit(0.0, 1e-10, 0.0), 1),  # no latency was found
        (1024, Fit(1e-5, 0.0, 0.0), 0),
        (11_000, LATENT, 0),
        (13_000, LATENT, 1),
        (884, Fit(0.0, 1e-10, 0.0), 0),  # within a tenth
        (892, Fit(0.0, 1e-10, 0.0), 1),
    ],
)
def test_shorter_messages_matter_where_the_fit_makes_them_cheaper(notes, shortest, fitted, told):
    bench = measured((shortest, 65536), fitted)
    assert len(notes(bench, *FOUR, *of_bytes(800))) == told


def test_messages_that_go_to_nobody_are_not_told(notes):
    assert notes(measured((20_000, 65536)), "--agents", 1, *of_bytes(800)) == []
    assert notes(measured(), "--agents", 1, *of_bytes(800_000)) == []


def test_a_note_is_one_line_each(notes):
    crowd = measured((20_000, 65536), bound=("0",) * 4)
    words = ("--payload", "100,50", "--algorithm", "sun-dsbo-se", "--agents")
    told = notes(crowd, *words, 9, "--ranks-per-node", 9)
    assert [line.split()[0] for line in told] == ["note:"] * 3


def test_what_is_said_of_the_weights_is_a_note_too(notes, tmp_path):
    (tmp_path / "g.edges").write_text("0 1\n1 2\n2 0\n2 2\n")
    told = notes(measured(), "--topology", "g.edges", *SMALL)
    assert any(line.startswith("note: 'g.edges': self-loops dropped: 1") for line in told)
