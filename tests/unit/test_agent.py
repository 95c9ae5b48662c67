"""The life of an agent without a network: the loop, and how all agents end it together."""

import math
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from together import together

from sundsbo_mpi.agent import Agent, answer
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.composition import State
from sundsbo_mpi.control import Control, Stop
from sundsbo_mpi.errors import DivergedError
from sundsbo_mpi.outgoing import Outgoing

VARIABLES = ("x", "y", "theta")


def variables(**values):
    return {v: torch.tensor([1.0, values.get(v, 0.0)]) for v in VARIABLES}


class Alone:
    """The average of an agent without neighbours."""

    def __init__(self):
        self.rounds, self.turns = 0, []

    def turn_to(self, k):
        self.turns.append((k, self.rounds))

    def post(self, outgoing):
        self.rounds += 1
        self.posted = outgoing.tensors

    def collect(self):
        return tuple(v.clone() for v in self.posted)


class Counter:
    """Adds one to every variable in each iteration; iteration ``bad`` has a direction of NaN."""

    def __init__(self, bad=None):
        self.bad = bad

    def start(self, task):
        return variables(), State((), {}, variables())

    def step(self, task, k, w, state):
        sent = yield Outgoing(tuple(w.values()))
        D_hat = variables(y=float("nan") if k == self.bad else 0.0)
        w = {v: s + 1 for v, s in zip(w, sent, strict=True)}
        return w, State((), {"k": k}, D_hat)


def agent(tally, iterations, eval_every, bad=None):
    return Agent(
        SimpleNamespace(),
        Counter(bad),
        Alone(),
        tally,
        Control(tally),
        Clock(),
        iterations,
        eval_every,
    )


@pytest.mark.parametrize(
    ("iterations", "eval_every", "evaluated"),
    [(7, 3, [0, 3, 6, 7]), (6, 3, [0, 3, 6]), (2, 5, [0, 2]), (0, 1, [0]), (3, 1, [0, 1, 2, 3])],
)
def test_it_evaluates_at_zero_every_so_often_and_at_the_end(iterations, eval_every, evaluated):
    rows, ticks = [], []

    def work(tally):
        one = agent(tally, iterations, eval_every)
        end = one.run(lambda *seen: rows.append(seen), ticks.append)
        assert one.gossip.rounds == iterations
        assert one.gossip.turns == [(k, k) for k in range(iterations)], "before the rounds of k"
        return end

    (end,) = together(1, work)
    assert (end.iterations, end.stop) == (iterations, None)
    assert [done for done, *_ in rows] == evaluated
    assert ticks == list(range(1, iterations + 1))
    for done, now, before, state in rows:
        assert float(now["x"][0]) == 1.0 + done
        assert float(before["x"][0]) == 1.0 + max(done - 1, 0)
        assert state.memory == ({"k": done - 1} if done else {})
    assert float(end.w["x"][0]) == 1.0 + iterations


def test_answer_hands_the_averages_back_and_returns_what_the_step_returns():
    log = []

    class Halve:
        def post(self, outgoing):
            log.append("post")
            self.posted = outgoing.tensors

        def collect(self):
            log.append("collect")
            return tuple(v / 2 for v in self.posted)

    def step():
        (first,) = yield Outgoing((torch.tensor([8.0]),))
        a, b = yield Outgoing((first, 3 * first), meanwhile=lambda: log.append("meanwhile"))
        return {"a": a, "b": b}, "state"

    w, state = answer(step(), Halve(), Clock(), nullcontext())
    assert ({v: float(s) for v, s in w.items()}, state) == ({"a": 2.0, "b": 6.0}, "state")
    assert log == ["post", "collect", "post", "meanwhile", "collect"]


def test_what_is_done_meanwhile_is_done_while_messages_are_moved():
    log = []

    class Moving:
        def __enter__(self):
            log.append("moves")

        def __exit__(self, *_):
            log.append("rests")

    def step():
        yield Outgoing((torch.zeros(1),), meanwhile=lambda: log.append("meanwhile"))
        yield Outgoing((torch.zeros(1),))
        return {}, "state"

    answer(step(), Alone(), Clock(), Moving())
    assert log == ["moves", "meanwhile", "rests"], "and nobody is woken where nothing is to be done"


def live(tally, bad=None, ask=None, iterations=20, eval_every=10):
    """Let agent 1 of several meet a bad direction, or ask to stop, in an iteration."""
    one, rows, ticks = (
        agent(tally, iterations, eval_every, bad if tally.agent == 1 else None),
        [],
        [],
    )

    def advance(done):
        ticks.append(done)
        if (tally.agent, done - 1) == (1, ask):
            one.control.ask(Stop.WALLTIME)

    ended = None
    try:
        ended = one.run(lambda done, *_: rows.append(done), advance)
    except DivergedError as error:
        ended = str(error)
    return ended, rows, ticks[-1], one.control.words


@pytest.mark.parametrize(
    ("bad", "rows", "noticed"),
    [
        (4, [0], 6),  # one iteration later
        (8, [0], 10),  # with the next evaluation, before it
        (9, [0], 10),  # at the evaluation itself
        (10, [0, 10], 12),
        (18, [0, 10], 20),
        (19, [0, 10], 20),
    ],
)
def test_a_bad_direction_ends_the_run_one_iteration_later_on_all_agents(bad, rows, noticed):
    for said, seen, last, _ in together(3, lambda tally: live(tally, bad=bad)):
        assert f"direction of y on agent 1 was first not finite in iteration {bad};" in said
        assert seen == rows, "no row holds a number that is not finite"
        assert last == noticed


@pytest.mark.parametrize(
    ("ask", "rows", "noticed"),
    [(0, [0, 2], 2), (4, [0, 6], 6), (8, [0, 10], 10), (9, [0, 10], 10), (10, [0, 10, 12], 12)],
)
def test_a_wish_to_stop_is_met_one_iteration_later_on_all_agents(ask, rows, noticed):
    for end, seen, last, _ in together(3, lambda tally: live(tally, ask=ask)):
        assert (end.iterations, end.stop) == (noticed, Stop.WALLTIME)
        assert float(end.w["x"][0]) == 1.0 + noticed
        assert seen == rows, "the last point is recorded"
        assert last == noticed


@pytest.mark.parametrize("ask", [18, 19])
def test_a_wish_to_stop_at_the_end_changes_nothing(ask):
    for end, seen, *_ in together(2, lambda tally: live(tally, ask=ask)):
        assert (end.iterations, end.stop) == (20, None)
        assert seen == [0, 10, 20]


def test_bad_numbers_win_over_a_wish_to_stop():
    for said, seen, *_ in together(2, lambda tally: live(tally, bad=5, ask=5)):
        assert "not finite in iteration 5" in said
        assert seen == [0]


def test_there_is_one_word_for_every_iteration():
    for *_, words in together(2, live):
        assert words == 20


def test_agents_stop_when_the_time_of_one_is_over():
    def work(tally):
        one = agent(tally, 9, 9)
        one = replace(one, control=Control(tally, -1.0 if tally.agent == 2 else math.inf))
        return one.run(lambda *_: None, lambda _done: None)

    for end in together(3, work):
        assert (end.iterations, end.stop) == (2, Stop.WALLTIME)
