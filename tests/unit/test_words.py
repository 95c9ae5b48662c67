"""How the agents' words come to be known to all of them."""

import pytest

from sundsbo_mpi.comm.words import RADIX, distances


def reached(told):
    """Return by how much agents are apart when one has come to know of the other."""
    known = {0}
    for far in told:
        known |= {d + more for d in known for more in far}
    return known


@pytest.mark.parametrize("agents", [*range(1, 140), 1000, 1024, 1025, 5000])
def test_every_agent_comes_to_know_of_every_other(agents):
    assert {d % agents for d in reached(distances(agents))} == set(range(agents))


@pytest.mark.parametrize(
    ("agents", "steps", "messages"),
    [
        *[(1, 1, 0), (2, 1, 1), (10, 1, 9), (RADIX, 1, RADIX - 1)],
        *[(RADIX + 1, 2, 5 + 5), (64, 2, 7 + 7), (RADIX**2, 2, 2 * (RADIX - 1))],
        *[(1025, 3, 10 + 10 + 8), (4096, 3, 3 * 15)],
    ],
)
def test_steps_are_few_and_so_are_messages(agents, steps, messages):
    told = distances(agents)
    assert (len(told), sum(map(len, told))) == (steps, messages)


@pytest.mark.parametrize("agents", [2, 33, 50, 64, 1000, 3000])
def test_agents_tell_each_other_in_one_step_only(agents):
    """So messages between two agents are all of the same step, and cannot be mistaken."""
    far = [d for step in distances(agents) for d in step]
    assert len(set(far)) == len(far)
    assert all(0 < d < agents for d in far)
