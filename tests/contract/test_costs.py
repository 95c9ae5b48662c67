"""What an iteration costs: rounds, vectors, numbers, gradients and sweeps of back-propagation."""

import bench
import pytest
from lockstep import Lockstep

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.composition import Oracles

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
    "sparkle-gt": (6, 6),
    "sparkle-extra": (3, 3),
    "sparkle-ed": (3, 3),
    "sparkle-gt-extra": (5, 5),
    "sparkle-gt-ed": (5, 5),
    "sparkle-extra-gt": (4, 4),
    "sparkle-extra-ed": (3, 3),
    "sparkle-ed-gt": (4, 4),
    "sparkle-ed-extra": (3, 3),
    "d-soba": (1, 3),
    "d-soba-fo": (1, 3),
    "sldbo": (1, 6),
}
"""Rounds, and vectors to each neighbour, per iteration; in a fused round they are one message."""
TRACKING = ("gt", "semi-gt", "non-atc-gt")


def costs(name, variant):
    """Return rounds and vectors; at once, variables share rounds: two if any is ATC-tracked."""
    rounds, vectors = COSTS[name]
    if variant.get("order") == "one-pass":
        rounds = 2 if "gt" in bench.techniques(name).values() else 1
    return rounds, vectors


@bench.every_variant
def test_rounds_and_payload_are_the_declared_ones(name, variant):
    rounds, vectors = costs(name, variant)
    tasks = bench.quadratics(3, d_x=D_X, d_y=D_Y)
    algorithm = bench.build(name, 3, **variant)
    assert (algorithm.rounds, algorithm.vectors) == (rounds, vectors)
    run = Lockstep(algorithm, tasks, bench.ring(3, 0.5)).run(ITERATIONS)
    assert run.rounds == rounds * ITERATIONS
    assert run.vectors == vectors * ITERATIONS
    numbers = sum(
        (D_X if v == "x" else D_Y) * (2 if technique in TRACKING else 1)
        for v, technique in bench.techniques(name).items()
    )
    assert run.numbers == numbers * ITERATIONS


@pytest.mark.parametrize("name", bench.SUN + bench.AID)
def test_the_price_of_the_defaults_is_what_the_list_shows(name):
    declared = by_default(METHODS[name])
    assert (declared.rounds, declared.vectors) == COSTS[name]


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


SECOND_ORDER = {"hvp": 1, "jvp": 1}


def price(name, variant):
    """Return what is evaluated per iteration, in how many sweeps, and for how many variables."""
    if name in bench.SUN:
        times = 2 if variant["estimator"] == "storm" else 1
        return Oracles(f=1, g=2).times(times), times, 3 * times  # all in one scalar
    if name == "d-soba-fo":
        return Oracles(f=1, g=3), 4, 7  # f, g_y, and g at two more points
    if variant.get("order") == "gauss-seidel":
        return Oracles(f=2, g=3, **SECOND_ORDER), 7, 7  # g_y; f_y, g_y, HVP; f_x, g_y, JVP
    return Oracles(f=1, g=1, **SECOND_ORDER), 3, 5  # f, g_y, both products at once


@bench.every_variant
def test_nothing_is_evaluated_but_the_declared_oracles(monkeypatch, name, variant):
    """One batch per iteration; a gradient that is not needed would be one sweep too many."""
    oracles, sweeps, variables = price(name, variant)
    swept = bench.sweeps_of(monkeypatch)
    tasks = bench.quadratics(3, task=bench.Counting, noise=0.1)
    algorithm = bench.build(name, 3, **variant)
    assert algorithm.oracles == oracles
    Lockstep(algorithm, tasks, bench.ring(3, 0.5)).run(ITERATIONS)
    assert [t.of_f for t in tasks] == [oracles.f * ITERATIONS] * 3
    assert [t.of_g for t in tasks] == [oracles.g * ITERATIONS] * 3
    assert [t.batches for t in tasks] == [[(k, 0) for k in range(ITERATIONS)]] * 3
    assert len(swept) == sweeps * ITERATIONS * 3
    assert sum(along for along, _ in swept) == variables * ITERATIONS * 3
    apart = variant.get("order") == "gauss-seidel"
    graphs = (oracles.hvp + oracles.jvp) // (1 if apart else 2)
    assert sum(kept for _, kept in swept) == graphs * ITERATIONS * 3, (
        "graphs kept for a second differentiation"
    )
