"""The invariant of every technique: at rounding level in a sound run, and not in any other."""

import bench
import numpy as np
import pytest
from lockstep import Lockstep
from together import together

from sundsbo_mpi import metrics
from sundsbo_mpi.algorithms import METHODS
from sundsbo_mpi.estimators import ESTIMATORS

OPTIONS = {
    "step_x": {"scale": 0.05, "power": 0.3},
    "step_y": {"scale": 0.08, "power": 0.5},
    "step_theta": 0.04,
    "p": 0.2,
    "gamma": 0.5,
}
ITERATIONS = 12


def invariants(run):
    """Measure as the program does: by all agents together."""
    defects = run.defects()
    measured = together(len(defects), lambda t: metrics.invariants(t, defects[t.agent]))
    assert all(found == measured[0] for found in measured)
    return measured[0]


def drive(name, W, tamper=None, **options):
    tasks = bench.quadratics(noise=0.2)
    return Lockstep(bench.build(name, **OPTIONS, **options), tasks, W, tamper).run(ITERATIONS)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", METHODS)
def test_it_is_at_rounding_level_in_a_sound_run(name, estimator):
    found = invariants(drive(name, bench.uneven(), estimator=estimator))
    assert set(found) == {"x", "y", "theta"}
    assert max(found.values()) < 1e-12


@pytest.mark.parametrize("name", METHODS)
def test_it_catches_columns_that_do_not_sum_to_one(name):
    walk = bench.ring(5, 0.5) * np.linspace(1, 2, 5)
    walk /= walk.sum(axis=1, keepdims=True)
    assert min(invariants(drive(name, walk)).values()) > 1e-3


@pytest.mark.parametrize("name", METHODS)
def test_it_catches_a_network_that_corrupts_what_one_agent_receives(name):
    """Agent 0 takes 1.5 times what agent 1 sent."""
    W = bench.uneven()

    def corrupt(buffer, averages):
        averages[0] += 0.5 * W[0, 1] * buffer[1]
        return averages

    assert min(invariants(drive(name, W, corrupt)).values()) > 1e-3


@pytest.mark.parametrize("name", METHODS)
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
