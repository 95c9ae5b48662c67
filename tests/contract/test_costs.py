"""What an iteration costs: rounds, vectors, numbers and gradients."""

import bench
import pytest
from lockstep import Lockstep

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.estimators import ESTIMATORS
from sundsbo_mpi.tasks.quadratic import Quadratic

D_X, D_Y, ITERATIONS = 2, 3, 4
COSTS = {
    "sun-dsbo-se": (1, 3),
    "sun-dsbo-dgd": (1, 3),
    "sun-dsbo-gt": (2, 6),
    "sun-dsbo-semi-gt": (1, 6),
    "sun-dsbo-non-atc-gt": (1, 6),
    "sun-dsbo-extra": (1, 3),
    "sun-dsbo-ed": (1, 3),
    "sun-dsbo-ed-gt": (2, 5),
    "sun-dsbo-extra-gt": (2, 5),
}
"""Rounds, and vectors to each neighbour, per iteration; in a fused round they are one message."""
TRACKED = {name: vectors - 3 for name, (_, vectors) in COSTS.items()}
"""Vectors beyond one per variable: how many variables are tracked."""


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", METHODS)
def test_rounds_and_payload_are_the_declared_ones(name, estimator):
    rounds, vectors = COSTS[name]
    declared = by_default(METHODS[name])
    assert (declared.rounds, declared.vectors) == (rounds, vectors)

    tasks = bench.quadratics(3, d_x=D_X, d_y=D_Y)
    algorithm = bench.build(name, 3, estimator=estimator)
    run = Lockstep(algorithm, tasks, bench.ring(3, 0.5)).run(ITERATIONS)
    assert run.rounds == rounds * ITERATIONS
    assert run.vectors == vectors * ITERATIONS
    tracked = {0: 0, 2: 2 * D_Y, 3: D_X + 2 * D_Y}[TRACKED[name]]
    assert run.numbers == (D_X + 2 * D_Y + tracked) * ITERATIONS


@pytest.mark.parametrize(
    ("mix", "rounds", "vectors"),
    [
        ({"x": "gt", "y": "gt", "theta": "se"}, 2, 5),
        ({"x": "se", "y": "extra", "theta": "semi-gt"}, 1, 4),
        ({"x": "dgd", "y": "ed", "theta": "gt"}, 2, 4),
    ],
)
def test_a_mix_costs_the_most_rounds_and_the_sum_of_vectors(mix, rounds, vectors):
    algorithm = bench.build("sun-dsbo-gt", 3, **mix)
    assert (algorithm.rounds, algorithm.vectors) == (rounds, vectors)
    run = Lockstep(algorithm, bench.quadratics(3), bench.ring(3, 0.5)).run(ITERATIONS)
    assert (run.rounds, run.vectors) == (rounds * ITERATIONS, vectors * ITERATIONS)


class Counting(Quadratic):
    """Counts the evaluations of f and the batches drawn."""

    def __init__(self, **options):
        super().__init__(**options)
        self.evaluations, self.batches = 0, []

    def upper(self, x, y, batch):
        self.evaluations += 1
        return super().upper(x, y, batch)

    def sample(self, k, draw=0):
        self.batches.append((k, draw))
        return super().sample(k, draw)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", METHODS)
def test_the_direction_is_evaluated_once_per_iteration_and_by_storm_twice(name, estimator):
    tasks = bench.quadratics(3, task=Counting, noise=0.1)
    algorithm = bench.build(name, 3, estimator=estimator)
    Lockstep(algorithm, tasks, bench.ring(3, 0.5)).run(ITERATIONS)
    each = 2 if estimator == "storm" else 1
    assert [t.evaluations for t in tasks] == [each * ITERATIONS] * 3
    assert [t.batches for t in tasks] == [[(k, 0) for k in range(ITERATIONS)]] * 3
