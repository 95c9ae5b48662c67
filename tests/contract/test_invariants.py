"""The invariant of every technique: at rounding level in a sound run, and not in any other."""

import bench
import numpy as np
import pytest
from lockstep import Lockstep
from together import together

from sundsbo_mpi import metrics

ITERATIONS = 12


def invariants(run):
    """Measure as the program does: by all agents together."""
    defects = run.defects()
    measured = together(len(defects), lambda t: metrics.invariants(t, defects[t.agent]))
    assert all(found == measured[0] for found in measured)
    return measured[0]


def drive(name, W, tamper=None, **options):
    tasks = bench.quadratics(noise=0.2)
    algorithm = bench.build(name, **bench.lively(name, **options))
    return Lockstep(algorithm, tasks, W, tamper).run(ITERATIONS)


@bench.every_variant
def test_it_is_at_rounding_level_in_a_sound_run(name, variant):
    found = invariants(drive(name, bench.uneven(), **variant))
    assert set(found) == set(bench.techniques(name))
    assert max(found.values()) < 1e-12


@pytest.mark.parametrize("name", bench.SUN + bench.AID)
def test_it_catches_columns_that_do_not_sum_to_one(name):
    walk = bench.ring(5, 0.5) * np.linspace(1, 2, 5)
    walk /= walk.sum(axis=1, keepdims=True)
    assert min(invariants(drive(name, walk)).values()) > 1e-3


@pytest.mark.parametrize("name", bench.SUN + bench.AID)
def test_it_catches_a_network_that_corrupts_what_one_agent_receives(name):
    """Agent 0 takes 1.5 times what agent 1 sent."""
    W = bench.uneven()

    def corrupt(buffer, averages):
        averages[0] += 0.5 * W[0, 1] * buffer[1]
        return averages

    assert min(invariants(drive(name, W, corrupt)).values()) > 1e-3


@pytest.mark.parametrize("name", bench.SUN + bench.AID)
def test_it_catches_a_message_that_arrives_too_late(name):
    """Agent 0 always uses the message before, of the same length, from agent 1."""
    W = bench.uneven()
    last = {}

    def stale(buffer, averages):
        now = buffer[1].clone()
        averages[0] += W[0, 1] * (last.get(now.shape, now) - now)
        last[now.shape] = now
        return averages

    assert min(invariants(drive(name, W, stale)).values()) > 1e-3
