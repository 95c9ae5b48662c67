import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundsbo_mpi.randomness import Stream, generator
from sundsbo_mpi.tasks import sampling
from sundsbo_mpi.tasks.sampling import Epochs


def epochs(samples=23, batch=5, seed=3, agent=1, stream=Stream.TRAIN_BATCHES):
    return Epochs(samples, batch, seed=seed, agent=agent, stream=stream)


@settings(max_examples=30, deadline=None)
@given(samples=st.integers(1, 40), batch=st.integers(1, 60), count=st.integers(1, 4))
def test_every_epoch_shows_every_sample_once(samples, batch, count):
    one = epochs(samples, batch)
    batches = -(-count * samples // batch)
    row = np.concatenate([one.indices(k) for k in range(batches)])
    assert len(row) == batches * batch
    for epoch in range(count):
        shown = row[epoch * samples : (epoch + 1) * samples]
        assert sorted(shown) == list(range(samples))


def test_a_batch_does_not_depend_on_what_was_asked_before():
    asked = epochs()
    forwards = [asked.indices(k, draw) for k in range(40) for draw in range(3)]
    asked_backwards = epochs()
    backwards = [asked_backwards.indices(k, draw) for k in range(39, -1, -1) for draw in (2, 1, 0)]
    for one, other in zip(forwards, reversed(backwards), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(epochs().indices(17, 2), forwards[17 * 3 + 2])


def test_epochs_are_shuffled_differently():
    one = epochs(samples=50, batch=50)
    assert not np.array_equal(one.indices(0), one.indices(1))
    assert not np.array_equal(one.indices(0), np.arange(50))


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 4},
        {"agent": 2},
        {"stream": Stream.VALIDATION_BATCHES},
    ],
)
def test_seeds_agents_and_streams_have_rows_of_their_own(other):
    mine, theirs = epochs(100, 100), epochs(100, 100, **other)
    assert not np.array_equal(mine.indices(0), theirs.indices(0))


def test_draws_within_an_iteration_differ():
    one = epochs(100, 100)
    assert not np.array_equal(one.indices(0, 0), one.indices(0, 1))


def test_a_permutation_is_drawn_once_per_epoch(monkeypatch):
    drawn = []

    def counted(*key):
        drawn.append(key)
        return generator(*key)

    monkeypatch.setattr(sampling, "generator", counted)
    one = epochs(samples=100, batch=10)
    for k in range(30):
        one.indices(k)
        one.indices(k, 1)
    assert len(drawn) == len(set(drawn)) == 6


def test_generators_with_keys_of_different_length_differ():
    numbers = [
        generator(7, Stream.NOISE, *key).random() for key in ((), (0,), (0, 0), (1,), (0, 1))
    ]
    assert len(set(numbers)) == 5
