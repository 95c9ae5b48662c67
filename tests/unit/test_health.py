"""Who is blamed for a NaN."""

import pytest
import torch
from together import complaints

from sundsbo_mpi.diagnosis.health import MOST_SKIPS, Health, NotFiniteError, Trouble
from sundsbo_mpi.errors import DivergedError
from sundsbo_mpi.ranks.control import GO_ON, SAVE, Stop, stop_in

VARIABLES = ("x", "y", "theta")
BIG = float(torch.finfo(torch.float32).max)


def variables(**values):
    return {v: torch.tensor([1.0, values.get(v, 0.0)]) for v in VARIABLES}


def judge(*notes, agents=4):
    """Each note is (agent, k, variables); return what every agent says of them together."""

    def work(tally):
        health = Health(tally.agent, tally.agents, VARIABLES)
        for who, k, w in notes:
            if who == tally.agent:
                health.note_direction(k, w)
        health.judge(tally.smallest(health.word))

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
        health.judge(tally.smallest(health.word))

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


@pytest.mark.parametrize("word", [GO_ON, SAVE, *Stop])
def test_words_about_something_else_blame_nobody(word):
    health = Health(0, 4, VARIABLES)
    health.judge(word)
    assert health.found(word) is None


def test_words_to_stop_are_told_from_all_others():
    assert [stop_in(word) for word in Stop] == list(Stop)
    assert {stop_in(word) for word in (GO_ON, SAVE, min(Stop) - 1, 0)} == {None}


def test_the_error_carries_what_was_found():
    health = Health(2, 4, VARIABLES)
    health.note_point(6, variables(y=float("nan")))
    found = Trouble("y", agent=2, k=6, of_point=True)
    assert health.found(health.word) == found
    with pytest.raises(NotFiniteError) as caught:
        health.judge(health.word)
    assert caught.value.trouble == found


def in_trouble(health, k):
    """Let the agent meet a bad direction in iteration k; return what is found."""
    health.note_direction(k, variables(y=float("inf")))
    return health.found(health.word)


def test_after_a_skip_the_agent_is_well_until_the_next_trouble():
    health = Health(3, 4, VARIABLES)
    said = health.skip(in_trouble(health, 17))
    assert said == "iteration 17 skipped: the direction of y on agent 3 was not finite"
    assert health.word == GO_ON
    health.note_direction(18, variables())
    assert health.word == GO_ON
    assert in_trouble(health, 19).k == 19


def test_so_many_skips_in_a_row_are_no_accident():
    health = Health(1, 4, VARIABLES)
    for k in range(MOST_SKIPS):
        health.skip(in_trouble(health, k))
    with pytest.raises(NotFiniteError, match=f"in iteration {MOST_SKIPS}; {MOST_SKIPS} before it"):
        health.skip(in_trouble(health, MOST_SKIPS))


def test_an_iteration_that_went_well_ends_the_row():
    health, k = Health(1, 4, VARIABLES), 0
    for skipped in range(3 * MOST_SKIPS):
        health.skip(in_trouble(health, k))
        k += 1 + (skipped % MOST_SKIPS == MOST_SKIPS - 1)
