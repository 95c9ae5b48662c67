"""Agents that are lost, at moments that were chosen, from runs that go on without them."""

import pytest
from kills import PLAN, try_one


@pytest.fixture(autouse=True)
def _needs_fault_tolerance(library):
    if library != "openmpi":
        pytest.skip("only Open MPI offers fault tolerance")


def plan(*deaths, **changes):
    return PLAN | {"deaths": list(deaths), **changes}


def test_one_loss_after_another_until_two_are_left():
    """From the first iteration on, also of agent 0, of two at once, and in a recovery.

    Those who are left are done with a status of their own, and wait for who still has to write.
    """
    deaths = [
        (4, 0, "posted"),
        (0, 29, "evaluating"),
        (2, 60, "begun"),
        (5, 60, "collected"),
        (3, 3, "recovering"),
    ]
    last = try_one(7, plan(*deaths, method="sun-dsbo-ed", status=85, closing_seconds=3.0))
    assert last["agents"] == [1, 6]
    assert last["bridges"] == [[1, 6]]
    assert 60 <= last["from"] <= 62


def test_losses_at_the_very_end():
    """In the last iteration, before the end is agreed on, and after."""
    iterations = 60
    deaths = [
        (0, iterations - 1, "posted"),
        (2, 0, "agreeing"),
        (3, 0, "gone"),
    ]
    last = try_one(5, plan(*deaths, topology="star", iterations=iterations))
    assert last["from"] == iterations
    assert set(last["agents"]) == {1, 3, 4}
