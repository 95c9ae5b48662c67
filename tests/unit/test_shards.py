import hashlib

import numpy as np
import pytest
from labelled_samples import AGENTS, COLOURS, DATA

from sundsbo_mpi.datasets import load_dataset
from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.shards import corrupt, labelled_shards


def divide(data=DATA, agents=AGENTS, seed=0, heterogeneity=1.0, corruption=0.4):
    return labelled_shards(data, agents, seed, heterogeneity=heterogeneity, corruption=corruption)


def test_shards_hold_every_test_sample_once_and_equal_numbers_of_others():
    shards = divide()
    assert sum(len(shard["test_labels"]) for shard in shards) == 10
    tested = np.concatenate([shard["test_inputs"] for shard in shards])
    assert sorted(map(tuple, tested)) == sorted(map(tuple, DATA.test.images))
    assert {len(shard["train_labels"]) for shard in shards} == {12}
    assert {len(shard["validation_labels"]) for shard in shards} == {6}


def test_wrong_labels_are_marked_and_validation_and_test_labels_are_right():
    parts = {"train": DATA.train, "validation": DATA.validation, "test": DATA.test}
    for shard in divide():
        for name, part in parts.items():
            true = dict(zip(map(tuple, part.images), part.labels, strict=True))
            truth = [true[tuple(image)] for image in shard[f"{name}_inputs"]]
            wrong = shard[f"{name}_labels"] != truth
            marked = shard["corrupted"] if name == "train" else np.zeros(len(wrong), dtype=bool)
            np.testing.assert_array_equal(wrong, marked)
        assert shard["corrupted"].any()


def test_no_label_is_wrong_unless_asked_for():
    shards = labelled_shards(DATA, AGENTS, 0, heterogeneity=1.0)
    assert not any(shard["corrupted"].any() for shard in shards)
    for clean, noisy in zip(shards, divide(), strict=True):
        np.testing.assert_array_equal(clean["train_inputs"], noisy["train_inputs"])


def test_every_shard_says_what_its_inputs_are():
    for shard in divide(COLOURS):
        assert tuple(shard["shape"]) == (3, 16, 17)
        assert shard["classes"] == 10
        np.testing.assert_array_equal(shard["mean"], COLOURS.mean)
        np.testing.assert_array_equal(shard["std"], COLOURS.std)


def test_shards_can_be_repeated_and_follow_the_seed():
    one, same, other = (divide(seed=seed, heterogeneity=0.5) for seed in (3, 3, 4))
    for mine, theirs in zip(one, same, strict=True):
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name])
    assert any(
        not np.array_equal(a["train_labels"], b["train_labels"])
        for a, b in zip(one, other, strict=True)
    )


def test_shards_of_digits_stay_what_they_were():
    shards = divide(load_dataset("digits", None, 3), 10, 3, 0.1, 0.3)
    names = ("train_inputs", "train_labels", "corrupted", "validation_inputs", "test_labels")
    digest = hashlib.sha256()
    for shard in shards:
        for name in names:
            digest.update(shard[name].astype(np.int64).tobytes())
    assert digest.hexdigest() == "222238e217e45fb8190579028c4a887666d64c1e1c11c2f6245e68dc364ca45a"


def test_shards_can_be_sent_as_they_are():
    for shard in divide():
        for array in shard.values():
            assert array.flags.c_contiguous
            assert array.flags.writeable
            assert array.dtype != object


def test_corruption_has_the_asked_rate_and_hits_all_classes():
    labels = np.repeat(np.arange(10), 2000)
    noisy = corrupt(labels, 10, 0.3, np.random.default_rng(0))
    assert np.mean(noisy != labels) == pytest.approx(0.27, abs=0.01)
    np.testing.assert_allclose(np.bincount(noisy[noisy != labels]) / 540, 1, atol=0.15)
    np.testing.assert_array_equal(corrupt(labels, 10, 0.0, np.random.default_rng(0)), labels)
    assert np.mean(corrupt(labels, 10, 1.0, np.random.default_rng(0)) == labels) < 0.12


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"heterogeneity": 0}, "task.heterogeneity is 0"),
        ({"corruption": 1.5}, "task.corruption is 1.5"),
        ({"agents": 21}, "21 agents cannot share the 20 validation samples"),
        ({"agents": 38}, "38 agents cannot share the 37 training samples"),
    ],
)
def test_what_cannot_be_divided_is_refused(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        divide(**options)
