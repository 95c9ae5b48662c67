"""Which methods compute while their messages travel, and that nobody is woken for nothing."""

import bench
import pytest

from sundsbo_mpi.composition.multi_step import MultiStep
from sundsbo_mpi.outgoing import nothing

EARLY = {"dgd", "non-atc-gt", "extra", "suda-extra"}
"""Techniques whose first message needs no gradient."""
TECHNIQUES = sorted(EARLY | {"se", "gt", "semi-gt", "ed"})


@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("of_x", [None, "se"])
def test_a_gradient_is_left_to_do_meanwhile_if_no_message_needs_it(technique, of_x):
    (task,) = bench.quadratics(1)
    algorithm = bench.build("sun-dsbo-se", x=of_x or technique, y=technique, theta=technique)
    w, state = algorithm.start(task)
    step, heard, left = algorithm.step(task, 0, w, state), None, []
    while True:
        try:
            outgoing = step.send(heard)
        except StopIteration:
            break
        left.append(outgoing.meanwhile is not nothing)
        outgoing.meanwhile()
        heard = outgoing.tensors
    assert left[0] == (technique in EARLY and of_x is None)
    assert not any(left[1:]), "it is computed once"


@pytest.mark.parametrize("technique", ["dgd", "non-atc-gt"])
def test_a_round_that_is_repeated_hands_its_work_over_once(technique):
    """A network may do the work that it is handed, whether or not it was done before."""
    (task,) = bench.quadratics(1)
    algorithm = MultiStep(bench.build(f"sun-dsbo-{technique}"), 3)
    step = algorithm.step(task, 0, *algorithm.start(task))
    left, heard = [], None
    for _ in range(algorithm.rounds):
        outgoing = step.send(heard)
        left.append(outgoing.meanwhile is not nothing)
        heard = outgoing.tensors
    assert left == [True, False, False]
