import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from together import complaints, together

from sundsbo_mpi.errors import AgreedError
from sundsbo_mpi.measuring import metrics

AGENTS = 3
ROWS = np.random.default_rng(0).standard_normal((AGENTS, 4))


def own(agent, dtype=torch.float64):
    return {"x": torch.tensor(ROWS[agent], dtype=dtype), "y": torch.full((2,), float(agent))}


def test_averages_and_consensus_are_those_of_numpy():
    def work(tally):
        w = own(tally.agent)
        w_bar = metrics.average(tally, w)
        return w_bar, metrics.consensus(tally, w, w_bar)

    for w_bar, consensus in together(AGENTS, work):
        np.testing.assert_allclose(w_bar["x"], ROWS.mean(axis=0), atol=1e-15)
        spread = np.sum((ROWS - ROWS.mean(axis=0)) ** 2, axis=1).mean()
        assert consensus == pytest.approx({"x": spread, "y": 2 * (1 + 0 + 1) / 3})


def test_averages_keep_the_dtype_and_are_summed_in_double():
    """In single precision 1e8 + 1 - 1e8 would be 0."""
    values = [1e8, 1.0, -1e8]

    def work(tally):
        w = {"x": torch.tensor([values[tally.agent]], dtype=torch.float32)}
        return metrics.average(tally, w)["x"]

    for v in together(AGENTS, work):
        assert v.dtype == torch.float32
        assert float(v) == pytest.approx(1 / 3)


def test_invariants_are_ratios_of_norms_of_means():
    scale = torch.tensor([3.0, 4.0])

    def work(tally):
        balanced = torch.tensor([tally.agent - 1.0, 0.0])
        return metrics.invariants(
            tally, {"x": (balanced, scale), "y": (balanced + torch.tensor([0.0, 1.0]), scale)}
        )

    for found in together(AGENTS, work):
        assert found == pytest.approx({"x": 0.0, "y": 1 / 5})


def test_reference_errors_are_relative_and_named():
    w_bar = {"x": torch.tensor([3.0, 4.0]), "y": torch.tensor([1.0])}
    known = {"bilevel": {"x": torch.tensor([0.0, 5.0]), "y": torch.tensor([1.0])}}
    found = metrics.reference_errors(known, w_bar)
    assert found == pytest.approx({"error_bilevel_x": math.sqrt(10) / 5, "error_bilevel_y": 0.0})


def reported(report, **members):
    """Return what every agent gets for report(agent, x) at x = 10 on average, own x = agent."""

    def work(tally):
        task = SimpleNamespace(report=lambda x, y: report(tally.agent, float(x)), **members)
        w_bar, w = ({"x": torch.tensor(v), "y": torch.zeros(1)} for v in (10.0, float(tally.agent)))
        return metrics.report(tally, task, w_bar, w)

    return work


def test_floats_are_averaged_and_pairs_merged_here_and_at_the_agents_own_point():
    def report(agent, x):
        return {"loss": x + agent, "accuracy": (x * agent, agent + 1), "none": (0.0, 0)}

    for found in together(AGENTS, reported(report)):
        assert list(found)[:3] == ["loss", "accuracy", "none"]
        assert found["loss"] == pytest.approx(11.0)
        assert found["accuracy"] == pytest.approx((10 * 1 + 10 * 2) / 6)
        assert found["loss_local"] == pytest.approx(2.0)
        assert found["accuracy_local"] == pytest.approx((1 + 4) / 6)
        assert math.isnan(found["none"])
        assert len(found) == 6


def test_arrays_of_any_length_are_gathered_for_the_summary_on_rank_0():
    def summarise(arrays):
        assert [a.tolist() for a in arrays["scores"]] == [[], [10.0], [10.0, 10.0]]
        return {"total": float(sum(a.sum() for a in arrays["scores"]))}

    def report(agent, x):
        return {"loss": 1.0, "scores": np.full(agent, x)}

    first, *others = together(AGENTS, reported(report, summarise=summarise))
    assert first == {"loss": 1.0, "loss_local": 1.0, "total": 30.0}
    assert others == [{"loss": 1.0, "loss_local": 1.0}] * 2


def test_arrays_without_a_summary_are_refused_everywhere():
    work = reported(lambda agent, x: {"scores": np.zeros(2)})
    said = complaints(AGENTS, work, AgreedError)
    assert len(set(said)) == 1
    assert "the arrays scores but has no method summarise" in said[0]


@pytest.mark.parametrize(
    "others",
    [
        {"loss": 1.0},
        {"loss": 1.0, "accuracy": 2.0},
        {"loss": 1.0, "akkuracy": (1, 2)},
        {"accuracy": (1, 2), "loss": 1.0},  # merged by place, so the order counts
    ],
)
def test_reports_that_differ_between_agents_are_refused_everywhere(others):
    usual = {"loss": 1.0, "accuracy": (1, 2)}
    said = complaints(AGENTS, reported(lambda i, _x: others if i == 1 else usual), AgreedError)
    assert all("report the same names and kinds in the same order" in s for s in said)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"loss": 10**400}, r"has 'loss': 10+\.\.\. \(401 characters\): expected a printable name"),
        ({"loss": (1.0, 10**5000)}, "has 'loss': .* expected"),
        ({"loss": 1j}, "'loss': 1j: expected"),
        ({"loss": np.complex128(1j)}, "'loss': .*1j.*: expected"),
        ({"loss": torch.tensor(1j)}, "'loss': tensor.*: expected"),
        ({"loss": np.array("high")}, "'loss': array.*: expected"),
        ({"lo\0ss": 1.0}, r"has 'lo\\x00ss': 1\.0: expected a printable name"),
        ({"loss\n": np.ones(2)}, r"has 'loss\\n': array.*: expected a printable name"),
        ({7: 1.0}, "has 7: 1.0: expected a printable name"),
        (["x" * 1000], r"report is \['x+\.\.\. \(1004 characters\): expected a mapping"),
    ],
)
def test_a_report_that_cannot_be_recorded_is_refused_everywhere(found, words):
    work = reported(lambda i, _x: found if i == 1 else {"loss": 1.0})
    for said in complaints(AGENTS, work, AgreedError):
        assert re.search(words, said)
        assert len(said) < 400
