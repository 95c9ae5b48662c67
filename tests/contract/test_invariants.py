"""The invariant of every technique: at rounding level in a sound run, and not in any other."""

import bench
import numpy as np
import pytest
import torch
from lockstep import Lockstep
from together import together

from sundsbo_mpi.measuring import metrics

ITERATIONS = 12


def invariants(run):
    """Measure as the program does: by all agents together."""
    defects = run.defects()
    measured = together(len(defects), lambda t: metrics.invariants(t, defects[t.agent]))
    assert all(found == measured[0] for found in measured)
    return measured[0]


def drive(name, W, tamper=None, **options):
    tasks = bench.quadratics(task=bench.Merged, noise=0.2)
    algorithm = bench.build(name, **bench.lively(name, **options))
    return Lockstep(algorithm, tasks, W, tamper).run(ITERATIONS)


def moved(run):
    """Name the variables that are not where they started."""
    start = [run.algorithm.start(task)[0] for task in run.tasks]
    pairs = zip(run.points, start, strict=True)
    return {v for w, w_0 in pairs for v in w if not torch.equal(w[v], w_0[v])}


@bench.every_method
def test_it_is_at_rounding_level_in_a_sound_run(name, variant):
    run = drive(name, bench.uneven(), **variant)
    found = invariants(run)
    assert set(found) == moved(run)
    assert max(found.values()) < 1e-12


@pytest.mark.parametrize("name", bench.DECENTRALISED)
def test_it_catches_columns_that_do_not_sum_to_one(name):
    walk = bench.ring(5, 0.5) * np.linspace(1, 2, 5)
    walk /= walk.sum(axis=1, keepdims=True)
    assert min(invariants(drive(name, walk)).values()) > 1e-3


@pytest.mark.parametrize("name", bench.DECENTRALISED)
def test_it_catches_a_network_that_corrupts_what_one_agent_receives(name):
    """Agent 0 takes 1.5 times what agent 1 sent."""
    W = bench.uneven()

    def corrupt(buffer, averages):
        averages[0] += 0.5 * W[0, 1] * buffer[1]
        return averages

    assert min(invariants(drive(name, W, corrupt)).values()) > 1e-3


@pytest.mark.parametrize("name", bench.DECENTRALISED)
def test_it_catches_a_message_that_arrives_too_late(name):
    """Agent 0 always uses the message before, of the same length, from agent 1.

    Least is seen of Gossip-DSBO's averages, of which two in a row hardly differ.
    """
    W = bench.uneven()
    last = {}

    def stale(buffer, averages):
        now = buffer[1].clone()
        averages[0] += W[0, 1] * (last.get(now.shape, now) - now)
        last[now.shape] = now
        return averages

    assert min(invariants(drive(name, W, stale)).values()) > 1e-5
