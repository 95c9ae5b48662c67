"""The techniques one at a time: their first steps by hand, their lockstep, and their lookup."""

import pytest
import torch

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.techniques import TECHNIQUES, lockstep, technique

S, LAM = torch.tensor([3.0]), 0.5
SELF = 0.25
"""All neighbours send zeros: an average is a quarter of what the agent itself sent."""


def play(step, log=None):
    """Answer every yield of one agent by a quarter of it; return what the step returns."""
    answer = None
    while True:
        try:
            sent = step.send(answer)
        except StopIteration as end:
            return end.value
        if log is not None:
            log.append(sent)
        answer = tuple(SELF * v for v in sent) if isinstance(sent, tuple) else SELF * sent


def two_steps(name):
    """Return the first two iterates where D_hat is 8, then 2, and lam is 1/2, then 1/4."""
    t = TECHNIQUES[name]
    memory = t.start(S)
    first, memory = play(t.step(S, lambda: torch.tensor([8.0]), 0.5, memory))
    second, _ = play(t.step(first, lambda: torch.tensor([2.0]), 0.25, memory))
    return float(first), float(second)


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("se", (3 - 4) / 4, (-0.25 - 0.5) / 4),
        ("dgd", 3 / 4 - 4, -3.25 / 4 - 0.5),
        # D^0 = 8/4 = 2; D^1 = (2 + 2 - 8)/4 = -1
        ("gt", (3 - 1) / 4, (0.5 + 0.25) / 4),
        ("semi-gt", 3 / 4 - 1, -0.25 / 4 + 0.25),
        # D^0 = 8; D^1 = 8/4 + 2 - 8 = -4
        ("non-atc-gt", 3 / 4 - 4, -3.25 / 4 + 1),
        # scaled directions 4, then 1/2
        ("extra", 3 / 4 - 4, -3.25 - 3.25 / 4 - (3 + 3 / 4) / 2 + 3.5),
        ("ed", (3 - 4) / 4, (2 * -0.25 - 3 + 3.5) / 4),
    ],
)
def test_two_steps_by_hand(name, first, second):
    assert two_steps(name) == pytest.approx((first, second))


def test_every_technique_is_stepped_by_hand():
    marks = test_two_steps_by_hand.pytestmark[0].args[1]
    assert {name for name, *_ in marks} == set(TECHNIQUES)


@pytest.mark.parametrize("name", TECHNIQUES)
def test_the_gradient_is_asked_for_once(name):
    asked = []

    def gradient():
        asked.append(True)
        return S

    play(TECHNIQUES[name].step(S, gradient, LAM, TECHNIQUES[name].start(S)))
    assert len(asked) == 1


@pytest.mark.parametrize("name", ["dgd", "non-atc-gt", "extra"])
def test_what_can_be_sent_before_the_gradient_is(name):
    """So that a driver may compute while the message travels."""
    t = TECHNIQUES[name]

    def gradient():
        raise AssertionError("asked for too early")

    next(t.step(S, gradient, LAM, t.start(S)))


def test_the_bounds_on_the_smallest_eigenvalue():
    bounds = {name: t.lambda_min for name, t in TECHNIQUES.items()}
    assert bounds.pop("ed") == -1 / 3
    assert set(bounds.values()) == {-1.0}


def gradient_of(value):
    return lambda: torch.tensor([value])


def test_lockstep_fuses_the_rounds_and_keeps_the_variables_apart():
    """One message per round; a variable that is done does not travel in later rounds."""
    names = {"x": "gt", "y": "se", "theta": "semi-gt"}
    points = {"x": 3.0, "y": 5.0, "theta": 7.0}

    def steps():
        return {
            v: TECHNIQUES[name].step(
                torch.tensor([points[v]]),
                gradient_of(points[v] + 1),
                LAM,
                TECHNIQUES[name].start(torch.tensor([points[v]])),
            )
            for v, name in names.items()
        }

    log = []
    w, memory = play(lockstep(steps()), log)
    assert [[float(v) for v in sent] for sent in log] == [[4.0, 2.0, 8.0, 7.0], [2.5]]
    alone = {v: play(step) for v, step in steps().items()}
    assert list(w) == list(memory) == list(names)
    for v, (s, m) in alone.items():
        assert torch.equal(w[v], s)
        assert memory[v] == m


def test_lockstep_does_not_mind_who_finishes_first():
    def last_long(rounds):
        total = torch.zeros(1)
        for r in range(rounds):
            total = total + (yield torch.tensor([4.0 * (r + 1)]))
        return total, rounds

    w, memory = play(lockstep({"x": last_long(0), "y": last_long(3), "theta": last_long(1)}))
    assert {v: float(s) for v, s in w.items()} == {"x": 0.0, "y": 6.0, "theta": 1.0}
    assert memory == {"x": 0, "y": 3, "theta": 1}


def test_an_unknown_technique_is_named_beside_the_nearest():
    assert technique("gt") is TECHNIQUES["gt"]
    with pytest.raises(UsageError, match=r"unknown technique 'exta': did you mean 'extra'\?"):
        technique("exta")
