import gzip

import numpy as np
import pytest
from stored_data import cifar_set, pickled, put, put_binary

from sundsbo_mpi.datasets import load_dataset
from sundsbo_mpi.errors import DataNote, UsageError

BINARY, PICKLED = "cifar-10-batches-bin", "cifar-10-batches-py"


@pytest.fixture
def batches(monkeypatch):
    return cifar_set(monkeypatch)


def put_pickled(batches, directory, **options):
    contents = {name: pickled(batch, **options) for name, batch in batches.items()}
    put(contents, directory, compressed=False)


def everything(data):
    """Return the records of a data set, without their order in training and validation."""
    images = np.concatenate([data.train.images, data.validation.images])
    labels = np.concatenate([data.train.labels, data.validation.labels])
    return sorted(map(tuple, np.concatenate([labels[:, np.newaxis], images], axis=1).tolist()))


def test_both_versions_hold_the_same(batches, tmp_path):
    put_binary(batches, tmp_path / "b" / BINARY)
    put_pickled(batches, tmp_path / "p" / PICKLED)
    one, other = (load_dataset("cifar-10", str(tmp_path / which), seed=4) for which in "bp")
    assert [len(part.labels) for part in (one.train, one.validation, one.test)] == [80, 20, 20]
    expected = np.concatenate([batch for name, batch in batches.items() if name != "test_batch"])
    assert everything(one) == sorted(map(tuple, expected.tolist()))
    np.testing.assert_array_equal(one.test.images, batches["test_batch"][:, 1:])
    np.testing.assert_array_equal(one.test.labels, batches["test_batch"][:, 0])
    for part in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(one, part).images, getattr(other, part).images)
        np.testing.assert_array_equal(getattr(one, part).labels, getattr(other, part).labels)
    assert one.shape == (3, 2, 2)
    assert one.mean == pytest.approx([125.3, 123.0, 113.9], abs=0.1)
    assert one.std == pytest.approx([63.0, 62.1, 66.7], abs=0.1)


@pytest.mark.parametrize("options", [{"protocol": p} for p in range(6)] + [{"key": bytes}])
def test_pickles_of_every_protocol_are_read(batches, tmp_path, options):
    put_pickled(batches, tmp_path, **options)
    data = load_dataset("cifar-10", str(tmp_path), seed=0)
    np.testing.assert_array_equal(data.test.images, batches["test_batch"][:, 1:])


def test_compressed_batches_are_read(batches, tmp_path):
    put({f"{name}.bin": b.tobytes() for name, b in batches.items()}, tmp_path / BINARY)
    assert len(load_dataset("cifar-10", str(tmp_path), seed=0).train.labels) == 80


def test_an_incomplete_batch_is_used_with_a_sentence(batches, tmp_path):
    put_binary(batches | {"test_batch": batches["test_batch"][:3]}, tmp_path)
    with pytest.warns(DataNote, match="test_batch has 3 of 20 images"):
        data = load_dataset("cifar-10", str(tmp_path), seed=0)
    np.testing.assert_array_equal(data.test.labels, batches["test_batch"][:3, 0])


def test_a_missing_training_batch_is_noted(batches, tmp_path):
    put_binary({name: b for name, b in batches.items() if name != "data_batch_2"}, tmp_path)
    with pytest.warns(DataNote, match="data_batch_2 was not found"):
        data = load_dataset("cifar-10", str(tmp_path), seed=0)
    assert (len(data.train.labels), len(data.validation.labels)) == (64, 16)


@pytest.mark.filterwarnings("ignore::sundsbo_mpi.errors.DataNote")
@pytest.mark.parametrize("kept", ["data_batch_1", "test_batch"])
def test_a_missing_part_is_refused(batches, tmp_path, kept):
    put_binary({name: b for name, b in batches.items() if name == kept}, tmp_path)
    with pytest.raises(UsageError, match="was not found"):
        load_dataset("cifar-10", str(tmp_path), seed=0)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda b: b[:-1], "259 bytes, expected a multiple of 13"),
        (lambda b: b"", "0 bytes"),
        (lambda b: b + b[:13], "has more than 20 images"),
        (lambda b: b"\x0a" + b[1:], "a label above 9"),
        (lambda b: b[:5] + bytes([b[5] ^ 1]) + b[6:], "is not the known file"),
    ],
)
def test_a_damaged_binary_batch_is_refused(batches, tmp_path, damage, fault):
    put_binary(batches, tmp_path)
    (tmp_path / "data_batch_1.bin").write_bytes(damage(batches["data_batch_1"].tobytes()))
    with pytest.raises(UsageError, match=fault) as error:
        load_dataset("cifar-10", str(tmp_path), seed=0)
    assert "data_batch_1.bin" in str(error.value)
    assert "data fetch cifar-10" in str(error.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[: len(b) // 2],
        lambda b: b"",
        gzip.compress,
        lambda b: b.replace(b"labels", b"lapels"),
        lambda b: b.replace(b"data", b"dato"),
        lambda b: b.replace(b"numpy\ndtype", b"numpy\ndtypo"),
    ],
)
def test_a_damaged_pickle_is_refused(batches, tmp_path, damage):
    put_pickled(batches, tmp_path)
    content = damage(pickled(batches["data_batch_3"]))
    assert content != pickled(batches["data_batch_3"])
    (tmp_path / "data_batch_3").write_bytes(content)
    with pytest.raises(UsageError, match="data_batch_3 is not a batch of CIFAR-10"):
        load_dataset("cifar-10", str(tmp_path), seed=0)


def test_a_changed_pickle_is_refused(batches, tmp_path):
    changed = batches["data_batch_3"].copy()
    changed[4, 5] ^= 1
    put_pickled(batches, tmp_path)
    (tmp_path / "data_batch_3").write_bytes(pickled(changed))
    with pytest.raises(UsageError, match="is not the known file"):
        load_dataset("cifar-10", str(tmp_path), seed=0)
