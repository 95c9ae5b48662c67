"""What an iteration of the remaining baselines costs: messages, numbers, oracles, batches."""

import bench
import numpy as np
import pytest
from lockstep import Lockstep

from sundsbo_mpi.algorithms import METHODS, by_default
from sundsbo_mpi.composition import Oracles

D_X, D_Y, ITERATIONS, AGENTS = 2, 3, 4, 3
T, N, J, B = 3, 2, 4, 4
"""inner_y, inner_z and both meanings of terms in ``bench.LIVELY``."""
W = bench.ring(AGENTS, 0.5)


MATRIX = D_X * D_Y
COSTS = {
    # name: rounds, vectors, numbers, oracles, batches, sweeps of back-propagation
    "dsgda-gt": (
        2 * T + 2,
        4 * T + 2,
        4 * T * D_Y + 2 * D_X,
        Oracles(1, 2).times(T + 1),
        1 + T,
        T + 1,
    ),
    "ma-dsbo": (
        T + N + 1,
        T + 2 * N + 1,
        (T + 2 * N) * D_Y + D_X,
        Oracles(f=N + 1, g=T + N + 1, hvp=N, jvp=1),
        1 + T + N,
        T + 3 * N + 3,
    ),
    "mdbo": (1, 4, 2 * (D_X + D_Y), Oracles(1, 1, J - 1, 1), 1, 2 + J - 1 + 1),
    "vrdbo": (1, 4, 2 * (D_X + D_Y), Oracles(1, 1, J - 1, 1).times(2), 1, 2 * (2 + J - 1 + 1)),
    "dsbo": (
        T + N + 1,
        T + 2 * N + 1,
        T * D_Y + 2 * N * MATRIX + D_X,
        Oracles(f=1, g=T + N, hvp=N, jvp=N),
        1 + T + N,
        T + N * (1 + D_X) + 1,  # a product with a matrix takes one sweep for each of its d_x rows
    ),
    "gossip-dsbo": (
        1,
        6,
        2 * (D_X + D_Y) + MATRIX + B * D_Y**2,
        Oracles(f=1, g=1 + B, hvp=B, jvp=1),
        1 + B,
        1 + (1 + D_X) + B * (1 + D_Y),
    ),
    "d-psgd": (1, 1, D_Y, Oracles(f=1, g=1), 1, 1),
    "gnsd": (1, 2, 2 * D_Y, Oracles(f=1, g=1), 1, 1),
}


@pytest.mark.parametrize("name", bench.OTHERS)
def test_messages_and_numbers_are_the_declared_ones(name):
    rounds, vectors, numbers, *_ = COSTS[name]
    algorithm = bench.build(name, AGENTS, **bench.lively(name))
    assert (algorithm.rounds, algorithm.vectors) == (rounds, vectors)
    tasks = bench.quadratics(AGENTS, task=bench.Merged, d_x=D_X, d_y=D_Y)
    run = Lockstep(algorithm, tasks, W).run(ITERATIONS)
    assert run.rounds == rounds * ITERATIONS
    assert run.vectors == vectors * ITERATIONS
    assert run.numbers == numbers * ITERATIONS


@pytest.mark.parametrize("name", bench.OTHERS)
def test_nothing_is_evaluated_but_the_declared_oracles(monkeypatch, name):
    """Every batch is another draw; a gradient that is not needed would be one sweep too many."""
    *_, oracles, batches, sweeps = COSTS[name]
    swept = bench.sweeps_of(monkeypatch)
    tasks = bench.quadratics(AGENTS, task=bench.Counting, noise=0.1, d_x=D_X, d_y=D_Y)
    algorithm = bench.build(name, AGENTS, **bench.lively(name))
    assert algorithm.oracles == oracles
    Lockstep(algorithm, tasks, W).run(ITERATIONS)
    assert len(swept) == sweeps * ITERATIONS * AGENTS
    assert [t.of_f for t in tasks] == [oracles.f * ITERATIONS] * AGENTS
    assert [t.of_g for t in tasks] == [oracles.g * ITERATIONS] * AGENTS
    drawn = [(k, draw) for k in range(ITERATIONS) for draw in range(batches)]
    assert [sorted(t.batches) for t in tasks] == [drawn] * AGENTS


def test_meha_sends_nothing_and_takes_six_gradients_in_three_sweeps(monkeypatch):
    swept = bench.sweeps_of(monkeypatch)
    tasks = bench.quadratics(1, task=bench.Counting, noise=0.1)
    algorithm = bench.build("meha", 1)
    assert (algorithm.rounds, algorithm.vectors) == (0, 0)
    assert algorithm.oracles == Oracles(f=2, g=4)
    Lockstep(algorithm, tasks, np.eye(1)).run(ITERATIONS)
    assert swept == [(1, False)] * 3 * ITERATIONS
    assert (tasks[0].of_f, tasks[0].of_g) == (2 * ITERATIONS, 4 * ITERATIONS)
    assert tasks[0].batches == [(k, 0) for k in range(ITERATIONS)]


@pytest.mark.parametrize(
    ("name", "rounds", "vectors"),
    [
        ("dsgda-gt", 2, 6),
        ("ma-dsbo", 11, 16),
        ("mdbo", 1, 4),
        ("vrdbo", 1, 4),
        ("dsbo", 11, 16),
        ("gossip-dsbo", 1, 6),
        ("d-psgd", 1, 1),
        ("gnsd", 1, 2),
        ("meha", 0, 0),
    ],
)
def test_the_price_of_the_defaults_is_what_the_list_shows(name, rounds, vectors):
    declared = by_default(METHODS[name])
    assert (declared.rounds, declared.vectors) == (rounds, vectors)
    assert declared.lambda_min == -np.inf, "any sequence of matrices will do"
