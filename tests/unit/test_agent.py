"""The life of an agent without a network: the loop, and who is blamed for a NaN."""

from types import SimpleNamespace

import pytest
import torch
from together import complaints, together

from sundsbo_mpi.agent import Agent, Health, answer
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.composition import State
from sundsbo_mpi.errors import DivergedError
from sundsbo_mpi.outgoing import Outgoing

VARIABLES = ("x", "y", "theta")
BIG = float(torch.finfo(torch.float32).max)


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
    return Agent(SimpleNamespace(), Counter(bad), Alone(), tally, Clock(), iterations, eval_every)


@pytest.mark.parametrize(
    ("iterations", "eval_every", "evaluated"),
    [(7, 3, [0, 3, 6, 7]), (6, 3, [0, 3, 6]), (2, 5, [0, 2]), (0, 1, [0]), (3, 1, [0, 1, 2, 3])],
)
def test_it_evaluates_at_zero_every_so_often_and_at_the_end(iterations, eval_every, evaluated):
    rows, ticks = [], []

    def work(tally):
        one = agent(tally, iterations, eval_every)
        w = one.run(lambda *seen: rows.append(seen), ticks.append)
        assert one.gossip.rounds == iterations
        assert one.gossip.turns == [(k, k) for k in range(iterations)], "before the rounds of k"
        return w

    (w,) = together(1, work)
    assert [done for done, *_ in rows] == evaluated
    assert ticks == list(range(1, iterations + 1))
    for done, now, before, state in rows:
        assert float(now["x"][0]) == 1.0 + done
        assert float(before["x"][0]) == 1.0 + max(done - 1, 0)
        assert state.memory == ({"k": done - 1} if done else {})
    assert float(w["x"][0]) == 1.0 + iterations


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

    w, state = answer(step(), Halve(), Clock())
    assert ({v: float(s) for v, s in w.items()}, state) == ({"a": 2.0, "b": 6.0}, "state")
    assert log == ["post", "collect", "post", "meanwhile", "collect"]


def test_a_bad_direction_ends_the_run_at_the_next_evaluation_on_all_agents():
    rows = [[] for _ in range(3)]

    def work(tally):
        one = agent(tally, 10, 4, bad=5 if tally.agent == 1 else None)
        one.run(lambda done, *_: rows[tally.agent].append(done), lambda _done: None)

    said = complaints(3, work, DivergedError)
    assert len(set(said)) == 1
    assert "direction of y on agent 1 was first not finite in iteration 5" in said[0]
    assert rows == [[0, 4]] * 3


def judge(*notes, agents=4):
    """Each note is (agent, k, variables); return what every agent says of them together."""

    def work(tally):
        health = Health(tally.agent, tally.agents, VARIABLES)
        for who, k, w in notes:
            if who == tally.agent:
                health.note_direction(k, w)
        health.check(tally)

    return complaints(agents, work, DivergedError)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_the_earliest_iteration_wins_whoever_it_was(bad):
    said = judge((0, 8, variables(x=bad)), (3, 7, variables(theta=bad)), (3, 9, variables(x=bad)))
    assert len(set(said)) == 1
    assert "direction of theta on agent 3 was first not finite in iteration 7" in said[0]


def test_within_an_iteration_the_first_variable_and_agent_are_named():
    """A variable that moves before others takes bad numbers to their directions on any agent."""
    nan = float("nan")
    notes = (1, 5, variables(theta=nan)), (3, 5, variables(y=nan)), (2, 5, variables(y=nan))
    assert "direction of y on agent 2 was first not finite in iteration 5" in judge(*notes)[0]


def judge_points(direction, point):
    """Let agent 3 meet a bad direction and agent 0 a bad point, each in the given iteration."""
    nan = float("nan")

    def work(tally):
        health = Health(tally.agent, tally.agents, VARIABLES)
        if tally.agent == 3:
            health.note_direction(direction, variables(y=nan))
        if tally.agent == 0:
            health.note_point(point, variables(x=nan))
        health.check(tally)

    return complaints(4, work, DivergedError)[0]


def test_a_point_is_blamed_only_if_no_direction_was_first():
    assert "direction of y on agent 3 was first not finite in iteration 5" in judge_points(5, 5)
    assert "x itself on agent 0 was first not finite in iteration 4" in judge_points(5, 4)


def test_an_agent_remembers_its_own_first_trouble_only():
    nan = float("nan")
    said = judge((1, 2, variables()), (1, 3, variables(x=nan)), (1, 4, variables(theta=nan)))
    assert "direction of x on agent 1 was first not finite in iteration 3" in said[0]


def test_numbers_that_overflow_only_in_their_sum_are_finite():
    w = {v: torch.full((4,), BIG) for v in VARIABLES}
    assert not w["x"].sum().isfinite()
    assert judge((0, 1, w), (1, 1, variables())) == [None] * 4


def test_infinities_of_both_signs_are_not_missed():
    w = variables() | {"y": torch.tensor([float("inf"), -float("inf")])}
    assert "direction of y on agent 2" in judge((2, 6, w))[0]


def test_late_iterations_of_many_agents_do_not_overflow():
    said = judge((3, 10**12, variables(theta=float("nan"))))
    assert f"theta on agent 3 was first not finite in iteration {10**12}" in said[0]
