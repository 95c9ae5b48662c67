import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundsbo_mpi.tasks.partition import _cuts, dirichlet_shards


def balanced(samples, classes=10):
    return np.arange(samples) % classes


def unevenness(labels, shards):
    """Mean over the agents of the total variation between their classes and everybody's."""
    classes = labels.max() + 1
    overall = np.bincount(labels, minlength=classes) / len(labels)
    own = [np.bincount(labels[shard], minlength=classes) / len(shard) for shard in shards]
    return np.mean([np.abs(one - overall).sum() / 2 for one in own])


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.integers(0, 9), min_size=30, max_size=200),
    agents=st.integers(1, 30),
    H=st.sampled_from([1e-300, 1e-6, 1e-3, 0.01, 0.1, 1.0, 100.0, 1e6]),
    seed=st.integers(0, 1000),
)
def test_shards_are_equal_in_size_and_share_no_sample(labels, agents, H, seed):
    labels = np.array(labels)
    shards = dirichlet_shards(labels, agents, H, np.random.default_rng(seed))
    assert [len(shard) for shard in shards] == [len(labels) // agents] * agents
    used = np.concatenate(shards)
    assert len(set(used.tolist())) == len(used)
    assert used.min() >= 0
    assert used.max() < len(labels)


def test_nothing_is_left_out_when_the_agents_divide_the_samples():
    shards = dirichlet_shards(balanced(300), 10, 0.1, np.random.default_rng(0))
    assert sorted(np.concatenate(shards)) == list(range(300))


def test_agents_differ_more_as_H_falls():
    labels = balanced(2000)
    by_H = [
        np.mean(
            [
                unevenness(labels, dirichlet_shards(labels, 10, H, np.random.default_rng(seed)))
                for seed in range(5)
            ]
        )
        for H in (1e4, 10.0, 1.0, 0.1, 0.001)
    ]
    assert by_H == sorted(by_H)
    # Without equal sizes the expected values at H = 10, 1 and 0.1 are 0.11, 0.33 and 0.69.
    assert by_H[0] < 0.05
    assert by_H[1:4] == pytest.approx([0.13, 0.38, 0.66], abs=0.06)
    assert by_H[-1] == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("H", [0.1, 1.0])
def test_proportions_are_drawn_again_until_nobody_has_less_than_half_of_a_fair_share(H):
    for seed in range(20):
        cuts = _cuts([100] * 10, 10, H, np.random.default_rng(seed))
        held = sum(np.diff(cut, prepend=0, append=100) for cut in cuts)
        assert held.sum() == 1000
        assert held.min() >= 50


def test_the_same_generator_gives_the_same_shards():
    one, other = (dirichlet_shards(balanced(500), 7, 0.1, np.random.default_rng(5)) for _ in "ab")
    np.testing.assert_array_equal(one, other)
    another = dirichlet_shards(balanced(500), 7, 0.1, np.random.default_rng(6))
    assert not np.array_equal(one, another)


def test_samples_of_a_group_of_agents_stay_in_it():
    """Sixteen agents are served as ten and six: with H huge all have all classes alike."""
    labels = balanced(16_000)
    shards = dirichlet_shards(labels, 16, 1e6, np.random.default_rng(0))
    for shard in shards:
        counts = np.bincount(labels[shard], minlength=10)
        assert counts.min() > 75
        assert counts.max() < 125
