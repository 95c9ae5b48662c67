"""Whatever a method remembers goes to a file and comes back bit for bit."""

import bench
import pytest
import torch
from lockstep import Lockstep
from test_memory import tensors

from sundsbo_mpi.agent import Position
from sundsbo_mpi.checkpoint.moment import Expected, Moment, Spent, read_moment, write_moment
from sundsbo_mpi.composition.compression import Compressed, Replica
from sundsbo_mpi.composition.compressors import COMPRESSORS, Coarseness
from sundsbo_mpi.composition.multi_step import MultiStep
from sundsbo_mpi.errors import UsageError

NOTHING_SPENT = Spent(0, 0, 0, 0.0, 0, 0, 0.0, {}, {})


def through_files(run, folder):
    """Replace what the agents hold by what their files say."""
    for agent, (w, state) in enumerate(zip(run.points, run.states, strict=True)):
        path = folder / f"{run.k}-{agent}.h5"
        moment = Moment(Position(run.k, w, state), NOTHING_SPENT)
        digest = write_moment(path, moment, agent)
        expected, begun = Expected(agent, run.k, digest), run.algorithm.start(run.tasks[agent])
        at = read_moment(path, expected, begun, bench.CPU).at
        run.points[agent], run.states[agent] = at.w, at.state


def same(one, other):
    held, expected = tensors([one.points, one.states]), tensors([other.points, other.states])
    return len(held) == len(expected) > 0 and all(map(torch.equal, held, expected))


def runs(algorithm, task=bench.Merged):
    return [
        Lockstep(algorithm, bench.quadratics(task=task, noise=0.1), bench.uneven())
        for _ in range(2)
    ]


@bench.every_method
def test_a_run_that_went_through_files_is_one_that_did_not(tmp_path, name, variant):
    one, other = runs(bench.build(name, **bench.lively(name, **variant)))
    one.run(4)
    other.run(2)
    through_files(other, tmp_path)
    other.run(2)
    assert same(one, other)


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("at", [0, 2])
def test_the_replicas_of_compressed_messages_are_kept(tmp_path, compressor, at):
    plain = bench.build("sun-dsbo-gt", **bench.lively("sun-dsbo-gt", estimator="storm"))
    offer = COMPRESSORS[compressor]
    one, other = runs(Compressed(plain, offer.build(Coarseness()), offer.gamma_c, seed=4))
    one.run(at + 3)
    other.run(at)
    through_files(other, tmp_path)
    other.run(3)
    assert same(one, other)


def mean_of(defects):
    return sum(a for a, _ in defects) / len(defects)


@bench.every_method
def test_what_is_conserved_is_conserved_by_those_who_are_left(name, variant):
    """The techniques begin anew after the loss of an agent, or over another network."""
    algorithm = bench.build(name, **bench.lively(name, **variant))
    run = Lockstep(algorithm, bench.quadratics(task=bench.Merged, noise=0.1), bench.uneven()).run(3)
    left = Lockstep(algorithm, run.tasks[1:4], bench.ring(3, 0.5))
    left.k, left.points = run.k, run.points[1:4]
    before = run.states[1:4]
    gone_on = [s._replace(D_hat={}) for s in before]
    left.states = [algorithm.anew(w, s) for w, s in zip(left.points, gone_on, strict=True)]
    for old, new in zip(gone_on, left.states, strict=True):
        assert list(old.memory) == list(new.memory)
        assert new.estimate is old.estimate
        assert new.D_hat is old.D_hat
    for _ in range(3):
        left.iterate()
        everyone = zip(left.points, left.previous, left.states, strict=True)
        found = [algorithm.defect(left.k - 1, w, b, s) for w, b, s in everyone]
        for v in found[0]:
            assert mean_of([defects[v] for defects in found]).abs().max() < 1e-12, (name, v)


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (lambda kept: (), "replicas is a tuple of 0, expected a tuple of 4"),
        (lambda kept: kept[:3], "replicas is a tuple of 3, expected a tuple of 4"),
        (lambda kept: (*kept, kept[0]), "replicas is a tuple of 5, expected a tuple of 4"),
        (lambda kept: (*kept[:3], kept[3][:1]), "replicas.3 is a tuple of 1, expected Replica"),
        (
            lambda kept: tuple(Replica(*(v[1:] for v in pair)) for pair in kept),
            "replicas.0.v_hat is 20 numbers of float64, expected 21 numbers of float64",
        ),
        (
            lambda kept: tuple(Replica(*(v.float() for v in pair)) for pair in kept),
            "replicas.0.v_hat is 21 numbers of float32, expected 21 numbers of float64",
        ),
    ],
)
def test_replicas_of_other_rounds_are_refused(tmp_path, spoilt, said):
    """Those of a run with as many as this one has, two rounds twice over, are not."""
    plain = MultiStep(bench.build("sun-dsbo-gt", **bench.lively("sun-dsbo-gt")), 2)
    offer = COMPRESSORS["quantiser"]
    one, _ = runs(Compressed(plain, offer.build(Coarseness()), offer.gamma_c))
    one.run(1)
    through_files(one, tmp_path)
    state = one.states[0]
    feedback = state.estimate._replace(replicas=spoilt(state.estimate.replicas))
    one.states[0] = state._replace(estimate=feedback)
    (tmp_path / "spoilt").mkdir()
    with pytest.raises(UsageError, match=said):
        through_files(one, tmp_path / "spoilt")


def test_what_a_method_does_not_remember_is_refused(tmp_path):
    """A minibatch leaves nothing behind."""
    one, _ = runs(bench.build("sun-dsbo-gt", **bench.lively("sun-dsbo-gt", estimator="minibatch")))
    one.states[0] = one.states[0]._replace(estimate=(1.0,))
    with pytest.raises(UsageError, match="estimate is a tuple of 1, expected a tuple of 0"):
        through_files(one, tmp_path)


def test_compressed_messages_begin_anew_with_replicas_of_nothing():
    plain = bench.build("sun-dsbo-gt", **bench.lively("sun-dsbo-gt", estimator="momentum"))
    offer = COMPRESSORS["quantiser"]
    algorithm = Compressed(plain, offer.build(Coarseness()), offer.gamma_c)
    run = Lockstep(algorithm, bench.quadratics(task=bench.Merged), bench.uneven()).run(2)
    w, state = run.points[0], run.states[0]
    assert all(v.any() for pair in state.estimate.replicas for v in pair)
    new = algorithm.anew(w, state)
    assert len(new.estimate.replicas) == len(state.estimate.replicas) == algorithm.rounds
    for pair, before in zip(new.estimate.replicas, state.estimate.replicas, strict=True):
        for v, old in zip(pair, before, strict=True):
            assert not v.any()
            assert (v.shape, v.dtype) == (old.shape, old.dtype)
    assert new.estimate.estimate is state.estimate.estimate
    assert all(not m.D.any() for m in new.memory.values())
