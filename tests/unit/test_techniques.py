"""The techniques one at a time: their first steps by hand, their lockstep, and their lookup."""

import math

import pytest
import torch

from sundsbo_mpi.algorithms.sldbo import projected
from sundsbo_mpi.composition.fusion import lockstep
from sundsbo_mpi.composition.techniques import TECHNIQUES, Diffused, Extra, technique
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.outgoing import Outgoing

S, LAM = torch.tensor([3.0]), 0.5
SELF = 0.25
"""All neighbours send zeros: an average is a quarter of what the agent itself sent."""


def play(step, log=None, weight=SELF):
    """Answer every yield of one agent by its own weight; return what the step returns."""
    answer = None
    while True:
        try:
            sent = step.send(answer)
        except StopIteration as end:
            return end.value
        if isinstance(sent, Outgoing):
            sent = sent.tensors
        elif isinstance(sent, tuple):
            sent = Outgoing(sent).tensors
        else:
            (sent,) = Outgoing((sent,)).tensors
        if log is not None:
            log.append(sent)
        answer = tuple(weight * v for v in sent) if isinstance(sent, tuple) else weight * sent


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
        ("suda-extra", 3 / 4 - 4, (2 * -3.25 - 3) / 4 + 3.5),
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


@pytest.mark.parametrize("name", ["dgd", "non-atc-gt", "extra", "suda-extra"])
def test_what_can_be_sent_before_the_gradient_is(name):
    """So that a driver may compute while the message travels."""
    t = TECHNIQUES[name]

    def gradient():
        raise AssertionError("asked for too early")

    next(t.step(S, gradient, LAM, t.start(S)))


def test_the_bounds_on_the_smallest_eigenvalue():
    bounds = {name: t.lambda_min for name, t in TECHNIQUES.items()}
    assert bounds.pop("ed") == bounds.pop("suda-extra") == -1 / 3
    assert bounds.pop("extra") == -1.0
    assert set(bounds.values()) == {-math.inf}


def test_extra_with_w_twice_is_extra_when_the_weights_are_lazy():
    """With W' = (I + W)/2 and the same memory: W' (2 s - s_old) = s + W s - W' s_old."""
    s, old, lam_D_hat = torch.tensor([-1.25]), torch.tensor([3.0]), torch.tensor([4.0])
    lazy = (1 + SELF) / 2
    plain = TECHNIQUES["extra"].step(s, gradient_of(2.0), LAM, Extra(old, SELF * old, lam_D_hat))
    twice = TECHNIQUES["suda-extra"].step(s, gradient_of(2.0), LAM, Diffused(old, lam_D_hat))
    torch.testing.assert_close(play(plain)[0], play(twice, weight=lazy)[0])


@pytest.mark.parametrize(
    ("radius", "expected"), [(0.5, -0.5), (1.0, -1.0), (1.25, -1.25), (9, -3.25)]
)
def test_a_projection_ends_the_step_and_is_remembered_by_nobody(radius, expected):
    """The plain step of semi-gt from 3 along 8 would end at 3/4 - 4 with lam 2 and D = 2."""
    inner = TECHNIQUES["semi-gt"]
    bounded = projected(inner, radius)
    s, memory = play(bounded.step(S, gradient_of(8.0), 2.0, bounded.start(S)))
    plain, remembered = play(inner.step(S, gradient_of(8.0), 2.0, inner.start(S)))
    assert float(plain) == -3.25
    assert float(s) == pytest.approx(expected)
    assert memory == remembered
    assert (bounded.rounds, bounded.vectors, bounded.defect) == (1, 2, inner.defect)


def test_a_projection_shortens_and_does_not_turn():
    start = torch.tensor([6.0, 8.0])
    nothing = projected(TECHNIQUES["se"], 0.5)
    s, _ = play(nothing.step(start, lambda: torch.zeros(2), LAM, nothing.start(start)))
    torch.testing.assert_close(s, torch.tensor([0.3, 0.4]))


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
