"""Compressed and rounded gossip: the oracle's trajectories, exactness, and what is conserved."""

from functools import partial

import bench
import numpy as np
import oracle
import oracle_compressed
import pytest
import torch
from lockstep import Lockstep

from sundsbo_mpi.composition import State
from sundsbo_mpi.composition.compression import Compressed
from sundsbo_mpi.composition.compressors import COMPRESSORS, Coarseness
from sundsbo_mpi.composition.multi_step import MultiStep
from sundsbo_mpi.composition.rounding import WIRE_DTYPES, Rounded
from sundsbo_mpi.outgoing import Outgoing
from sundsbo_mpi.randomness import generator

W = bench.uneven()
TRACKING = ("gt", "semi-gt", "non-atc-gt")
MU, GAMMA, STEP = 0.8, 0.7, 0.1
STEPS = tuple(f"step_{v}" for v in oracle.VARIABLES)


def compressed(method, name, gamma_c=None, seed=0, **coarseness):
    offer = COMPRESSORS[name]
    built = offer.build(Coarseness(**coarseness))
    return Compressed(method, built, gamma_c or offer.gamma_c, seed)


FORMS = [
    pytest.param(lambda m: compressed(m, "quantiser", bits=3), id="quantiser"),
    pytest.param(lambda m: compressed(m, "quantiser", bits=2, block=3), id="coarser"),
    pytest.param(lambda m: compressed(m, "top-k", fraction=0.2), id="top-k"),
    pytest.param(lambda m: compressed(m, "random-k", fraction=0.3, seed=4), id="random-k"),
    pytest.param(lambda m: Rounded(m, "fp16"), id="fp16"),
    pytest.param(lambda m: Rounded(m, "bf16"), id="bf16"),
    pytest.param(lambda m: compressed(MultiStep(m, 2), "quantiser"), id="two rounds"),
]


def sun(technique, agents=5):
    steps = dict.fromkeys(STEPS, STEP)
    return bench.build(f"sun-dsbo-{technique}", agents, mu0=MU, gamma=GAMMA, **steps)


class Averaging:
    """A method that does nothing but average: one vector, one round."""

    rounds = vectors = 1
    lambda_min = -np.inf

    def start(self, task):
        return {"x": task}, State(None, {}, {})

    def lengths(self, w, _state):
        return [[len(w["x"])]]

    def step(self, task, k, w, state):
        (x,) = yield Outgoing((w["x"],))
        return {"x": x}, state


def spread(run):
    return float(np.abs(run.rows("x") - run.rows("x").mean(axis=0)).max())


def vectors(d=40):
    rng = np.random.default_rng(8)
    return [torch.from_numpy(rng.standard_normal(d)) for _ in W]


class WithoutFeedback(Rounded):
    """What a user might write first: send the compressed vector and average what arrives."""

    def _exchange(self, outgoing):
        (v,) = outgoing.tensors
        compressor = COMPRESSORS["quantiser"].build(Coarseness())
        message = compressor.encode(v, ())

        def decode(m):
            return compressor.decode(m, len(v), ()).to(v.dtype)

        (mixed,) = yield Outgoing((message,), decode=decode)
        return (v + 0.6 * (mixed - decode(message)),)


@pytest.mark.parametrize("form", [f for f in FORMS if f.id not in ("fp16", "bf16")])
def test_gossip_agrees_on_the_mean(form):
    start = vectors()
    mean = torch.stack(start).mean(dim=0).numpy()
    run = Lockstep(form(Averaging()), start, W).run(60)
    early = spread(run)
    assert spread(run.run(60)) < early / 5
    np.testing.assert_allclose(run.rows("x").mean(axis=0), mean, rtol=0, atol=1e-14)


class Disturbed(Averaging):
    """Averages in float32 what is disturbed anew in every iteration, by nothing on the mean."""

    def start(self, task):
        return {"x": torch.zeros(40)}, State(None, {}, {})

    def step(self, task, k, w, state):
        disturbance = torch.from_numpy(np.random.default_rng(k).standard_normal(40, np.float32))
        return super().step(task, k, {"x": w["x"] + task * disturbance}, state)


@pytest.mark.parametrize("form", [FORMS[0], FORMS[2], FORMS[3]])
def test_what_rounding_does_to_the_mean_does_not_add_up(form):
    """With replicas in float32 the mean strays by ten times as much and more."""
    run = Lockstep(form(Disturbed()), [-1.0, 0.5, 0.0, -0.5, 1.0], W).run(1000)
    strayed = np.abs(run.rows("x").astype(np.float64).mean(axis=0)).max()
    assert strayed < 2e-6 * spread(run)


def test_without_feedback_it_does_not():
    run = Lockstep(WithoutFeedback(Averaging(), "fp16"), vectors(), W).run(60)
    early = spread(run)
    assert early > 1e-2
    assert spread(run.run(60)) > early / 2


@pytest.mark.parametrize("wire", WIRE_DTYPES)
def test_rounded_messages_agree_to_their_rounding(wire):
    start = vectors()
    mean = torch.stack(start).mean(dim=0).numpy()
    run = Lockstep(Rounded(Averaging(), wire), start, W).run(100)
    assert 1e-6 < spread(run) < {"fp16": 2e-3, "bf16": 2e-2}[wire]
    np.testing.assert_allclose(run.rows("x").mean(axis=0), mean, rtol=0, atol=1e-14)
    assert run.bytes == 100 * 2 * 40


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("technique", ["se", "gt", "semi-gt", "non-atc-gt", "dgd"])
def test_what_a_method_conserves_is_conserved(technique, form):
    run = Lockstep(form(sun(technique)), bench.quadratics(noise=0.2), W)
    for _ in range(8):
        run.iterate()
        defects = run.defects()
        for v in oracle.VARIABLES:
            assert float(sum(d[v][0] for d in defects).abs().max()) < 1e-12
            assert max(float(d[v][1].abs().max()) for d in defects) > 1e-3


def directions(problem, S, k):
    return oracle.directions(problem, S, MU, GAMMA, oracle.no_noise(k))


QUANTISERS = [
    ("quantiser", {"bits": 3}, oracle_compressed.quantiser(3, 512), 0.6),
    ("quantiser", {"bits": 2, "block": 3}, oracle_compressed.quantiser(2, 3), 0.4),
    ("top-k", {"fraction": 0.1}, oracle_compressed.top_k(0.1), 0.3),
]


@pytest.mark.parametrize(("name", "coarseness", "Q", "gamma_c"), QUANTISERS)
@pytest.mark.parametrize("technique", ["se", *TRACKING, "extra", "ed"])
def test_follows_the_dense_recursion(technique, name, coarseness, Q, gamma_c):
    tasks = bench.quadratics(task=bench.Elsewhere)
    algorithm = compressed(sun(technique), name, gamma_c, **coarseness)
    run = Lockstep(algorithm, tasks, W)
    start = {v: run.rows(v) for v in oracle.VARIABLES}
    run.run(20)
    rounds = oracle_compressed.Rounds(W, Q, gamma_c)
    rows = oracle_compressed.trajectory(
        oracle.Quadratic(5, bench.SEED), technique, start, 20, STEP, directions, rounds
    )
    for v in oracle.VARIABLES:
        np.testing.assert_allclose(run.rows(v), rows[v], rtol=0, atol=1e-9, err_msg=v)


def settled(technique, network, rounds, iterations):
    """Return where the oracle ends on the quadratic with ten agents, with steps of 0.02."""
    start = {v: np.zeros((10, d)) for v, d in (("x", 5), ("y", 8), ("theta", 8))}
    problem = oracle.Quadratic(10, bench.SEED)
    return oracle_compressed.trajectory(
        problem, technique, start, iterations, 0.02, directions, rounds(network)
    )


TOP = pytest.param(oracle_compressed.top_k(0.1), 0.3, 4500, id="top-k")
QUANTISED = pytest.param(oracle_compressed.quantiser(3, 512), 0.6, 1600, id="quantiser")


@pytest.mark.parametrize(
    ("technique", "Q", "gamma_c", "iterations"),
    [
        pytest.param(technique, *form.values, id=f"{technique}-{form.id}")
        for technique in (*TRACKING, "extra", "ed")
        for form in (TOP, QUANTISED)
        if technique in TRACKING or form is QUANTISED
    ],
)
def test_what_is_exact_is_exact_although_compressed(technique, Q, gamma_c, iterations):
    rounds = partial(oracle_compressed.Rounds, Q=Q, gamma_c=gamma_c)
    rows = settled(technique, bench.ring(10, 0.5), rounds, iterations)
    solution = oracle.penalised_point(oracle.Quadratic(10, bench.SEED), 10, MU, GAMMA)
    assert max(np.abs(rows[v] - s).max() for v, s in solution.items()) < 1e-10


@pytest.mark.parametrize(
    ("name", "gamma_c", "coarseness"),
    [
        ("quantiser", None, {"bits": 3}),
        ("top-k", None, {"fraction": 0.3}),
        ("random-k", 0.3, {"fraction": 0.5, "seed": 4}),
    ],
)
def test_gradient_tracking_is_exact_although_compressed(name, gamma_c, coarseness):
    """The package itself, on fewer agents and with longer steps than the oracle above."""
    method = bench.build("sun-dsbo-gt", 4, mu0=MU, gamma=GAMMA, **dict.fromkeys(STEPS, 0.05))
    algorithm = compressed(method, name, gamma_c, **coarseness)
    run = Lockstep(algorithm, bench.quadratics(agents=4), bench.ring(4, 0.5)).run(480)
    solution = oracle.penalised_point(oracle.Quadratic(4, bench.SEED), 4, MU, GAMMA)
    assert max(np.abs(run.rows(v) - s).max() for v, s in solution.items()) < 1e-10


def test_diffusion_settles_where_it_does_with_part_of_the_weights():
    network, gamma_c = bench.ring(10, 0.5), 0.6
    quantised = partial(
        oracle_compressed.Rounds, Q=oracle_compressed.quantiser(3, 512), gamma_c=gamma_c
    )
    whole = partial(oracle_compressed.Rounds, Q=lambda X: X, gamma_c=1.0)
    partly = np.eye(10) + gamma_c * (network - np.eye(10))
    rows, known = settled("se", network, quantised, 1500), settled("se", partly, whole, 1500)
    for v in oracle.VARIABLES:
        np.testing.assert_allclose(rows[v], known[v], rtol=0, atol=1e-8)
    assert np.ptp(rows["y"], axis=0).max() > 1e-3, "the agents differ, as they do without"


@pytest.mark.parametrize("form", FORMS)
def test_rounds_and_bytes_are_the_declared_ones(form):
    algorithm = form(sun("gt"))
    run = Lockstep(algorithm, bench.quadratics(d_x=9, d_y=17), W).run(3)
    assert run.rounds == 3 * algorithm.rounds
    lengths = (9, 17, 17)
    if isinstance(algorithm, Rounded):
        message = 2 * sum(lengths)
    else:
        message = sum(map(algorithm.compressor.size, lengths))
    assert run.bytes == 3 * algorithm.rounds * message


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_finite_is_seen(form):
    start = vectors()
    start[2][3] = np.nan
    run = Lockstep(form(Averaging()), start, W).run(1)
    assert not np.isfinite(run.rows("x")[2]).all()
    start[2][3] = np.inf
    run = Lockstep(form(Averaging()), start, W).run(1)
    assert not np.isfinite(run.rows("x")[2]).all()


def test_numbers_beyond_fp16_travel_as_its_largest():
    start = [v * 1e6 for v in vectors()]
    run = Lockstep(Rounded(Averaging(), "fp16"), start, W).run(1)
    assert np.isfinite(run.rows("x")).all()


def stored(value):
    """Return a value as a file gives it back: no tensor is shared, tuples and names are kept."""
    if isinstance(value, torch.Tensor):
        return torch.frombuffer(bytearray(value.numpy().tobytes()), dtype=value.dtype)
    if isinstance(value, dict):
        return {key: stored(part) for key, part in value.items()}
    if isinstance(value, tuple):
        parts = map(stored, value)
        return value._make(parts) if hasattr(value, "_fields") else tuple(parts)
    assert value is None or isinstance(value, int | float), value
    return value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("technique", ["se", "gt"])
def test_a_run_goes_on_from_what_was_stored_of_points_and_states(technique, form):
    tasks = bench.quadratics(noise=0.2)
    one, other = (Lockstep(form(sun(technique)), tasks, W) for _ in range(2))
    one.run(4)
    other.points, other.states, other.k = (
        *map(list, map(stored, (tuple(one.points), tuple(one.states)))),
        4,
    )
    one.run(4), other.run(4)
    assert all(np.array_equal(one.rows(v), other.rows(v)) for v in oracle.VARIABLES)


def test_every_round_has_its_replica():
    (first, *_) = Lockstep(compressed(sun("gt"), "quantiser"), bench.quadratics(), W).run(1).states
    assert [len(replica.v_hat) for replica in first.estimate.replicas] == [21, 21]


def test_an_agent_reads_its_own_message_once():
    """The network asks for it beside those of the neighbours, and so does the feedback."""
    built, read = COMPRESSORS["quantiser"].build(Coarseness()), []

    def decode(message, d, key):
        read.append(key)
        return built.decode(message, d, key)

    counting = Compressed(Averaging(), built._replace(decode=decode), 0.6)
    Lockstep(counting, vectors(), W).run(3)
    assert len(read) == 3 * len(W)


def test_what_is_drawn_is_drawn_once_for_all_neighbours(monkeypatch):
    drawn = []

    def counting(seed, stream, *key):
        drawn.append(key)
        return generator(seed, stream, *key)

    monkeypatch.setattr("sundsbo_mpi.composition.compressors.generator", counting)
    random = compressed(sun("gt"), "random-k", fraction=0.3)
    Lockstep(random, bench.quadratics(), W).run(2)
    assert len(drawn) == len(set(drawn)) == 2 * 2 * 3  # iterations, rounds, variables
