import gzip
import hashlib

import numpy as np
import pytest

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks import datasets
from sundsbo_mpi.tasks.datasets import load_dataset


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(
        int(length).to_bytes(4, "big") for length in array.shape
    )
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def files(monkeypatch):
    """Four small files in Fashion-MNIST's format, whose checksums the loader is told."""
    images = np.arange(60 * 2 * 3).reshape(60, 2, 3) % 251
    contents = {
        "train-images-idx3-ubyte": idx(images),
        "train-labels-idx1-ubyte": idx(images[:, 0, 0] % 10),
        "t10k-images-idx3-ubyte": idx(images[:12] + 1),
        "t10k-labels-idx1-ubyte": idx((images[:12, 0, 0] + 3) % 10),
    }
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setattr(datasets, "SHA256", sums)
    return contents


def put(files, directory, *, compressed=True):
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if compressed:
            (directory / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (directory / name).write_bytes(content)


@pytest.mark.parametrize("layout", ["FashionMNIST/raw", "."])
@pytest.mark.parametrize("compressed", [True, False])
def test_fashion_mnist_is_read_from_both_layouts(files, tmp_path, layout, compressed):
    put(files, tmp_path / layout, compressed=compressed)
    data = load_dataset("fashion-mnist", str(tmp_path), seed=0)
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [50, 10, 12]
    assert data.train.images.dtype == np.uint8
    assert data.train.images.shape == (50, 6)
    for part in (data.train, data.validation):
        # Pixels count up over all images, and a label is its image's first pixel modulo 10.
        np.testing.assert_array_equal(part.labels, part.images[:, 0] % 10)
    firsts = np.concatenate([data.train.images, data.validation.images])[:, 0]
    assert len(set(firsts.tolist())) == len(set((np.arange(60) * 6 % 251).tolist()))
    np.testing.assert_array_equal(data.test.labels, (data.test.images[:, 0] + 2) % 10)


def test_debian_s_directory_is_used_without_data_dir(files, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "DEBIAN", tmp_path)
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
    assert "apt-get install dataset-fashion-mnist" in sentence
    assert "\n" not in sentence
    monkeypatch.setattr(datasets, "DEBIAN", tmp_path / "debian")
    with pytest.raises(UsageError, match="debian"):
        load_dataset("fashion-mnist", None, seed=0)


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


def test_digits_are_divided_without_overlap():
    data = load_dataset("digits", None, seed=0)
    parts = (data.train, data.validation, data.test)
    assert [len(part.labels) for part in parts] == [1000, 500, 297]
    assert data.mean == pytest.approx(data.train.images.mean())
    assert data.std == pytest.approx(data.train.images.std())
    pictures = np.concatenate([part.images for part in parts])
    from sklearn.datasets import load_digits

    assert sorted(map(tuple, pictures)) == sorted(map(tuple, load_digits().data.astype(np.uint8)))


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'digits'"):
        load_dataset("digit", None, seed=0)
