import gzip
import warnings

import numpy as np
import pytest
from stored_data import idx, idx_set, put

from sundsbo_mpi.datasets import files as stored_files
from sundsbo_mpi.datasets import load_dataset
from sundsbo_mpi.datasets.catalogue import ENTRIES
from sundsbo_mpi.errors import DataNote, UsageError

FOLDERS = {"mnist": "MNIST/raw", "fashion-mnist": "FashionMNIST/raw"}


@pytest.fixture
def files(monkeypatch):
    """Four small files in Fashion-MNIST's format."""
    return idx_set(monkeypatch, "fashion-mnist")


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("layout", [0, "."])
@pytest.mark.parametrize("name", FOLDERS)
def test_idx_sets_are_read_from_both_layouts(monkeypatch, tmp_path, name, layout, compressed):
    put(idx_set(monkeypatch, name), tmp_path / (layout or FOLDERS[name]), compressed=compressed)
    data = load_dataset(name, str(tmp_path), seed=0)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [50, 10, 12]
    assert data.train.images.dtype == np.uint8
    assert data.train.images.shape == (50, 6)
    assert data.train.labels.dtype == np.int64
    assert (data.shape, data.classes) == ((1, 2, 3), 10)
    for part in (data.train, data.validation):
        np.testing.assert_array_equal(part.labels, part.images[:, 0] % 10)
    firsts = np.concatenate([data.train.images, data.validation.images])[:, 0]
    assert len(set(firsts.tolist())) == len(set((np.arange(60) * 6 % 251).tolist()))
    np.testing.assert_array_equal(data.test.labels, (data.test.images[:, 0] + 2) % 10)


def test_the_customary_constants_are_those_of_a_stored_value(monkeypatch, tmp_path):
    put(idx_set(monkeypatch, "mnist"), tmp_path)
    data = load_dataset("mnist", str(tmp_path), seed=0)
    assert data.mean.dtype == data.std.dtype == np.float64
    assert data.mean == pytest.approx([0.1307 * 255])
    assert data.std == pytest.approx([0.3081 * 255])


def test_mnist_s_files_are_not_taken_for_fashion_mnist_s(monkeypatch, tmp_path):
    put(idx_set(monkeypatch, "mnist"), tmp_path)
    idx_set(monkeypatch, "fashion-mnist", offset=1)
    with pytest.raises(UsageError, match="is not the known file"):
        load_dataset("fashion-mnist", str(tmp_path), seed=0)


def test_debian_s_directory_is_used_without_data_dir(files, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_files, "DEBIAN", str(tmp_path))
    put(files, tmp_path)
    assert len(load_dataset("fashion-mnist", None, seed=0).test.labels) == 12


def test_the_seed_decides_the_split(files, tmp_path):
    put(files, tmp_path)
    one, same, other = (load_dataset("fashion-mnist", str(tmp_path), s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.train.images, same.train.images)
    assert not np.array_equal(one.train.images, other.train.images)
    np.testing.assert_array_equal(one.test.images, other.test.images)


@pytest.mark.usefixtures("files")
def test_missing_files_say_where_we_looked_and_how_to_get_them(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=r"train-images-idx3-ubyte\.gz was not found") as error:
        load_dataset("fashion-mnist", str(tmp_path / "away"), seed=0)
    sentence = str(error.value)
    assert str(tmp_path / "away" / "FashionMNIST" / "raw") in sentence
    assert "'apt-get install dataset-fashion-mnist'" in sentence
    assert "'sundsbo-mpi data fetch fashion-mnist --data-dir DIR'" in sentence
    assert "\n" not in sentence
    monkeypatch.setattr(stored_files, "DEBIAN", str(tmp_path / "debian"))
    with pytest.raises(UsageError, match="debian"):
        load_dataset("fashion-mnist", None, seed=0)
    with pytest.raises(UsageError, match="--data-dir was not given") as error:
        load_dataset("mnist", None, seed=0)
    assert "apt-get" not in str(error.value)


def test_one_missing_file_is_named(files, tmp_path):
    put(files, tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(UsageError, match=r"t10k-labels-idx1-ubyte\.gz was not found"):
        load_dataset("fashion-mnist", str(tmp_path), seed=0)


def test_a_changed_file_is_refused(files, tmp_path):
    put(files, tmp_path)
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    content = bytearray(files["train-labels-idx1-ubyte"])
    content[-1] ^= 1
    path.write_bytes(gzip.compress(bytes(content)))
    with pytest.raises(UsageError, match=r"train-labels-idx1-ubyte\.gz is not the known file"):
        load_dataset("fashion-mnist", str(tmp_path), seed=0)


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"no gzip" + b])
def test_a_damaged_archive_is_refused(files, tmp_path, damage):
    put(files, tmp_path)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UsageError, match="cannot be read"):
        load_dataset("fashion-mnist", str(tmp_path), seed=0)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (lambda b: b[:-1], "has 359 bytes for 60 samples"),
        (lambda b: b[:7], "does not start as it should"),
        (lambda b: b"", "does not start as it should"),
        (lambda b: b"\x00\x00\x0d\x03" + b[4:], "does not start as it should"),
        (lambda b: b[:4] + (61).to_bytes(4, "big") + b[8:], "has 360 bytes for 61 samples"),
        (lambda b: b[:4] + bytes(4) + b[8:16], "has 0 bytes for 0 samples"),
        (lambda b: b + b"\x00", "has more than 376 bytes"),
        (lambda b: bytes(10**6), "has more than 376 bytes"),
    ],
)
def test_a_file_of_another_size_is_refused(files, tmp_path, damage, fault):
    name = "train-images-idx3-ubyte"
    put(files | {name: damage(files[name])}, tmp_path)
    with pytest.raises(UsageError, match=fault):
        load_dataset("fashion-mnist", str(tmp_path), seed=0)


def test_an_incomplete_set_is_used_with_a_sentence(files, tmp_path):
    images, labels = np.zeros((7, 2, 3)), np.arange(7)
    put(
        files | {"t10k-images-idx3-ubyte": idx(images), "t10k-labels-idx1-ubyte": idx(labels)},
        tmp_path,
    )
    with pytest.warns(DataNote, match="t10k-images-idx3-ubyte has 7 of 12 images"):
        data = load_dataset("fashion-mnist", str(tmp_path), seed=0)
    np.testing.assert_array_equal(data.test.labels, labels)


@pytest.mark.parametrize(
    ("labels", "fault"), [([0, 1, 10], "a label 10, expected 0 to 9"), ([0, 1], "2 labels for 3")]
)
def test_labels_that_cannot_be_are_refused(files, tmp_path, labels, fault):
    small = {
        "t10k-images-idx3-ubyte": idx(np.zeros((3, 2, 3))),
        "t10k-labels-idx1-ubyte": idx(np.array(labels)),
    }
    put(files | small, tmp_path)
    with pytest.raises(UsageError, match=fault):
        load_dataset("fashion-mnist", str(tmp_path), seed=0)


def test_digits_are_divided_without_overlap():
    data = load_dataset("digits", None, seed=0)
    parts = (data.train, data.validation, data.test)
    assert [len(part.labels) for part in parts] == [1000, 500, 297]
    assert data.shape == (1, 8, 8)
    assert data.mean == pytest.approx([data.train.images.mean()])
    assert data.std == pytest.approx([data.train.images.std()])
    pictures = np.concatenate([part.images for part in parts])
    from sklearn.datasets import load_digits

    assert sorted(map(tuple, pictures)) == sorted(map(tuple, load_digits().data.astype(np.uint8)))


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'digits'"):
        load_dataset("digit", None, seed=0)


def test_the_catalogue_is_consistent():
    for entry in ENTRIES.values():
        assert len(entry.mean) == len(entry.std) == entry.shape[0]
        sums = [part.sha256 for part in (*entry.train, *entry.test)]
        assert len(set(sums)) == len(sums)
        assert all(len(bytes.fromhex(checksum)) == 32 for checksum in sums)
        for download in entry.downloads:
            algorithm, digest = download.checksum.split(":")
            assert len(bytes.fromhex(digest)) == {"md5": 16, "sha256": 32}[algorithm]


def test_a_complete_set_leaves_no_note(files, tmp_path):
    put(files, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_dataset("fashion-mnist", str(tmp_path), seed=0)
