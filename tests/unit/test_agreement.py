import pytest
from together import complaints, together

from sundsbo_mpi.comm.agreement import agree, deal, jointly, on_root
from sundsbo_mpi.errors import AgreedError, UsageError


def fail_on(bad, sentence="no"):
    def work(tally):
        def act():
            if tally.agent in bad:
                raise UsageError(f"{sentence} {tally.agent}")
            return tally.agent

        return act

    return work


def test_work_on_rank_0_is_done_there_only_and_known_everywhere():
    done = []

    def work(tally):
        return on_root(tally, lambda: done.append(tally.agent) or "result")

    assert together(3, work) == ["result"] * 3
    assert done == [0]


def test_a_complaint_of_rank_0_is_raised_everywhere():
    work = fail_on({0})
    assert complaints(3, lambda t: on_root(t, work(t)), AgreedError) == ["no 0"] * 3


def test_joint_work_gives_everyone_its_own_result():
    work = fail_on(set())
    assert together(3, lambda t: jointly(t, work(t))) == [0, 1, 2]


def test_the_first_complaint_of_joint_work_is_raised_everywhere():
    work = fail_on({2, 1})
    assert complaints(4, lambda t: jointly(t, work(t)), AgreedError) == ["no 1"] * 4


def test_a_bug_is_not_dressed_up_as_a_complaint():
    def work(tally):
        return jointly(tally, lambda: 1 / 0 if tally.agent == 1 else 0)

    with pytest.raises(ZeroDivisionError):
        together(2, work)


def test_agreeing_passes_or_names_the_first_difference():
    together(3, lambda t: agree(t, {"a": 1, "b": [2]}, "try again"))

    def work(tally):
        agree(tally, {"a": 1, "b": 7 if tally.agent == 2 else 5}, "try again")

    assert complaints(3, work, AgreedError) == ["b is 7 on rank 2 but 5 on rank 0: try again."] * 3


def test_what_rank_0_makes_is_dealt_out_and_made_there_only():
    made = []

    def work(tally):
        def make():
            made.append(tally.agent)
            yield from "abc"

        return deal(tally, make)

    assert together(3, work) == ["a", "b", "c"]
    assert made == [0]


@pytest.mark.parametrize("good", [0, 1, 2, 3])
def test_a_complaint_at_any_of_what_is_dealt_is_raised_everywhere(good):
    def make():
        yield from range(good)
        raise UsageError("no more")

    assert complaints(3, lambda t: deal(t, make), AgreedError) == ["no more"] * 3
