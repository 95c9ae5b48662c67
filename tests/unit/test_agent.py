"""The life of an agent without a network: the loop, and how all agents end it together."""

import math
import weakref
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from onlooker import Onlooker
from together import together

from sundsbo_mpi.agent import Agent, Observer, Position, answer
from sundsbo_mpi.clock import Clock
from sundsbo_mpi.composition import State
from sundsbo_mpi.errors import DivergedError
from sundsbo_mpi.outgoing import Outgoing
from sundsbo_mpi.ranks.control import GO_ON, Control, Stop

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
        posted, self.posted = self.posted, None
        return tuple(v.clone() for v in posted)


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
    seen = Onlooker()

    def work(tally):
        one = agent(tally, iterations, eval_every)
        end = one.run(seen)
        assert one.gossip.rounds == iterations
        assert one.gossip.turns == [(k, k) for k in range(iterations)], "before the rounds of k"
        return end

    (end,) = together(1, work)
    assert (end.iterations, end.stop) == (iterations, None)
    assert seen.evaluated == evaluated
    assert seen.ticks == list(range(1, iterations + 1))
    for done, now, state, before in seen.rows:
        assert float(now["x"][0]) == 1.0 + done
        assert (before is None) == (done == 0)
        assert before is None or float(before["x"][0]) == done
        assert state.memory == ({"k": done - 1} if done else {})
    assert float(end.w["x"][0]) == 1.0 + iterations


class Leaving(Counter):
    """Counts, at the beginning of a step, what is left of the vectors of earlier iterations."""

    def __init__(self):
        super().__init__()
        self.left, self._made = [], []

    def step(self, task, k, w, state):
        self.left.append(sum(one() is not None for one in self._made))
        self._made += map(weakref.ref, w.values())
        w, state = yield from super().step(task, k, w, state)
        self._made += map(weakref.ref, state.D_hat.values())
        return w, state


@pytest.mark.parametrize("skipping", [False, True])
def test_an_iteration_finds_the_room_of_the_last_one_s_directions_and_older_points(skipping):
    counter = Leaving()

    def work(tally):
        one = replace(agent(tally, 6, 2), algorithm=counter, skipping=skipping)
        one.run(Observer())
        one.control.close()

    together(1, work)
    if skipping:
        assert counter.left == [0] + [len(VARIABLES)] * 5, "a state that may be come back to"
    else:
        assert counter.left == [0] * 6


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


def live(tally, bad=None, ask=None, iterations=20, eval_every=10, steps=1):
    """Let agent 1 of several meet a bad direction, or ask to stop, in an iteration."""
    tally.steps = steps
    one = agent(tally, iterations, eval_every, bad if tally.agent == 1 else None)

    def advance(done):
        if (tally.agent, done - 1) == (1, ask):
            one.control.ask(Stop.WALLTIME)

    ended, seen = None, Onlooker(advance)
    try:
        ended = one.run(seen)
    except DivergedError as error:
        ended = str(error)
    return ended, seen.evaluated, seen.ticks[-1], one.control.turns


@pytest.mark.parametrize(
    ("steps", "bad", "rows", "noticed"),
    [
        (1, 4, [0], 6),  # one iteration later
        (1, 8, [0], 10),  # with the next evaluation, before it
        (1, 9, [0], 10),  # at the evaluation itself
        (1, 10, [0, 10], 12),
        (1, 18, [0, 10], 20),
        (1, 19, [0, 10], 20),
        (3, 4, [0], 8),  # three iterations later
        (3, 6, [0], 10),
        (3, 7, [0], 10),  # with the next evaluation, when its word is not known to all yet
        (3, 9, [0], 10),
        (3, 10, [0, 10], 14),
        (3, 19, [0, 10], 20),
    ],
)
def test_a_bad_direction_ends_the_run_when_all_agents_know_of_it(steps, bad, rows, noticed):
    for said, seen, last, _ in together(3, lambda tally: live(tally, bad=bad, steps=steps)):
        assert f"direction of y on agent 1 was first not finite in iteration {bad};" in said
        assert seen == rows, "no row holds a number that is not finite"
        assert last == noticed


@pytest.mark.parametrize(
    ("steps", "ask", "rows", "noticed"),
    [
        *[(1, 0, [0, 2], 2), (1, 4, [0, 6], 6), (1, 8, [0, 10], 10), (1, 9, [0, 10], 10)],
        *[(1, 10, [0, 10, 12], 12), (3, 0, [0, 4], 4), (3, 4, [0, 8], 8), (3, 7, [0, 10], 10)],
        *[(3, 9, [0, 10], 10), (3, 10, [0, 10, 14], 14)],
    ],
)
def test_a_wish_to_stop_is_met_when_all_agents_know_of_it(steps, ask, rows, noticed):
    for end, seen, last, _ in together(3, lambda tally: live(tally, ask=ask, steps=steps)):
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


@pytest.mark.parametrize(("steps", "turns"), [(1, 20), (3, 18 + 2 * 3)])
def test_there_is_a_turn_for_every_iteration_and_more_where_words_are_waited_for(steps, turns):
    for *_, words in together(2, lambda tally: live(tally, steps=steps)):
        assert words == turns


def test_agents_stop_when_the_time_of_one_is_over():
    def work(tally):
        one = agent(tally, 9, 9)
        one = replace(one, control=Control(tally, -1.0 if tally.agent == 2 else math.inf))
        return one.run(Observer())

    for end in together(3, work):
        assert (end.iterations, end.stop) == (2, Stop.WALLTIME)


@pytest.mark.parametrize(
    ("saves", "order"),
    [
        ([], [("row", 0), ("saved", 0), ("row", 3), ("row", 6), ("saved", 6)]),
        (
            [2, 3],
            [
                *[("row", 0), ("saved", 0), ("saved", 2), ("row", 3), ("saved", 3)],
                *[("row", 6), ("saved", 6)],
            ],
        ),
    ],
)
def test_a_checkpoint_comes_after_the_row_that_it_must_have(saves, order):
    seen = Onlooker(saves=lambda done: done in saves)
    together(1, lambda tally: agent(tally, 6, 3).run(seen))
    assert seen.order == order


def test_every_measuring_agent_has_a_place_to_go_on_from_should_another_be_lost():
    class Standing(Onlooker):
        def stand(self, at):
            self.stood = at.done

        def evaluate(self, at):
            super().evaluate(at)
            assert self.stood == at.done

    seen = Standing()
    together(1, lambda tally: agent(tally, 6, 3).run(seen))
    assert seen.evaluated == [0, 3, 6]


def test_a_run_that_stops_keeps_a_checkpoint_before_its_extra_row():
    def work(tally):
        seen = Onlooker(lambda done: done == 2 and one.control.ask(Stop.SIGUSR1))
        one = agent(tally, 9, 5)
        assert one.run(seen).stop == Stop.SIGUSR1
        return seen.order

    (order,) = together(1, work)
    assert order == [("row", 0), ("saved", 0), ("saved", 3), ("row", 3)]


@pytest.mark.parametrize(("steps", "saves"), [(1, [0, 2, 4, 6, 8, 9]), (3, [0, 4, 8, 9])])
def test_a_wish_for_a_checkpoint_is_met_by_all_agents_and_the_run_goes_on(steps, saves):
    def work(tally):
        tally.steps = steps
        seen, one = Onlooker(), agent(tally, 9, 9)
        saving = Control(tally, save_seconds=0.0 if tally.agent == 1 else math.inf)
        end = replace(one, control=saving).run(seen)
        return end, [at.done for at in seen.saved]

    for end, saved in together(3, work):
        assert (end.iterations, end.stop) == (9, None)
        assert saved == saves


def test_time_is_set_aside_for_the_checkpoint_before_the_deadline(monkeypatch):
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)

    def work(tally):
        control = Control(tally, deadline=110.0)
        control.note_saved(2.0)
        control.note_saved(1.0)
        return control

    (control,) = together(1, work)
    for moment, word in ((106.9, GO_ON), (107.0, Stop.WALLTIME)):
        now = moment
        control.start(GO_ON)
        assert control.finish() == word


def skipping(tally, bad, iterations=8, eval_every=4, steps=1):
    tally.steps = steps
    seen = Onlooker()
    one = agent(tally, iterations, eval_every)
    algorithm = Spoilt(bad) if tally.agent == 1 else Spoilt(())
    try:
        end = replace(one, algorithm=algorithm, skipping=True).run(seen)
    except DivergedError as error:
        return str(error), seen
    return end, seen


class Spoilt(Counter):
    """Has a direction of NaN in several iterations, and NaN in the point that they lead to."""

    def step(self, task, k, w, state):
        self.bad = k if k in self._all else None
        w, state = yield from super().step(task, k, w, state)
        return ({v: s * math.nan for v, s in w.items()} if k in self._all else w), state

    def __init__(self, bad):
        super().__init__()
        self._all = bad


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("bad", [(0,), (2,), (3,), (7,), (1, 2, 5)])
def test_a_skipped_iteration_is_undone_on_all_agents(bad, steps):
    for end, seen in together(3, lambda tally: skipping(tally, bad, steps=steps)):
        assert (end.iterations, end.stop) == (8, None)
        assert float(end.w["x"][0]) == 1.0 + 8 - len(bad), "on every agent"
        assert [k for _, k in seen.skips] == list(bad)
        assert seen.skips[0][0] == (
            f"iteration {bad[0]} skipped: the direction of y on agent 1 was not finite"
        )
        assert seen.evaluated == [0, 4, 8]
        for done, w, state, before in seen.rows[1:]:
            last = [k for k in range(done) if k not in bad]
            assert float(w["x"][0]) == 1.0 + len(last)
            assert state.memory == ({"k": last[-1]} if last else {})
            assert (before is None) == (done - 1 in bad)


def test_a_run_that_only_skips_ends():
    for said, seen in together(2, lambda tally: skipping(tally, range(3, 99), iterations=40)):
        assert "10 before it were skipped" in said
        assert len(seen.skips) == 10


def test_a_run_goes_on_from_where_it_stood():
    def work(tally):
        first = agent(tally, 9, 3).run(Onlooker(lambda _done: None))
        seen = Onlooker()
        one = agent(tally, 9, 3)
        w = {v: s + 4 for v, s in variables().items()}
        end = one.run(seen, Position(4, w, State((), {"k": 3}, variables())))
        assert one.gossip.turns == [(k, k - 4) for k in range(4, 9)]
        return first, end, seen.order

    ((first, end, order),) = together(1, work)
    assert all(torch.equal(first.w[v], end.w[v]) for v in VARIABLES)
    assert order == [("row", 6), ("row", 9), ("saved", 9)]


def test_a_run_that_was_complete_has_nothing_to_do():
    seen = Onlooker()
    at = Position(9, variables(), State((), {}, variables()))
    (end,) = together(1, lambda tally: agent(tally, 9, 3).run(seen, at))
    assert (end.iterations, end.stop, seen.order) == (9, None, [])
