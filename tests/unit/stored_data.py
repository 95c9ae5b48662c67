"""Small data sets in the formats of the large ones, whose checksums the catalogue is told."""

import gzip
import hashlib
import pickle
import zipfile

import numpy as np
from PIL import Image

from sundsbo_mpi.datasets import catalogue
from sundsbo_mpi.datasets.catalogue import Part

SHAPE = (3, 2, 2)
"""Of an image in the small CIFAR-10."""


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(
        int(length).to_bytes(4, "big") for length in array.shape
    )
    return header + array.astype(np.uint8).tobytes()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def idx_set(monkeypatch, name, offset=0):
    """Return 60 + 12 images of 2 x 3 pixels as the four files of an IDX data set.

    Pixels count up over all images, and a label is its image's first pixel modulo 10.
    """
    images = (np.arange(60 * 2 * 3) + offset).reshape(60, 2, 3) % 251
    contents = {
        "train-images-idx3-ubyte": idx(images),
        "train-labels-idx1-ubyte": idx(images[:, 0, 0] % 10),
        "t10k-images-idx3-ubyte": idx(images[:12] + 1),
        "t10k-labels-idx1-ubyte": idx((images[:12, 0, 0] + 3) % 10),
    }
    train, test = (
        tuple(
            Part(file, samples, sha256(content))
            for file, content in contents.items()
            if file.startswith(start)
        )
        for start, samples in (("train", 60), ("t10k", 12))
    )
    entry = catalogue.ENTRIES[name]._replace(train=train, test=test, shape=(1, 2, 3))
    monkeypatch.setitem(catalogue.ENTRIES, name, entry)
    return contents


def put(files, directory, *, compressed=True):
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if compressed:
            (directory / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (directory / name).write_bytes(content)


def cifar_set(monkeypatch, records=20):
    """Return the records of six batches of images of 2 x 2 pixels, and register them."""
    rng = np.random.default_rng(3)
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    batches = {
        name: np.concatenate(
            [rng.integers(10, size=(records, 1)), rng.integers(256, size=(records, 12))], axis=1
        ).astype(np.uint8)
        for name in names
    }
    parts = [Part(name, records, sha256(batch.tobytes())) for name, batch in batches.items()]
    entry = catalogue.ENTRIES["cifar-10"]._replace(
        train=tuple(parts[:5]), test=tuple(parts[5:]), shape=SHAPE
    )
    monkeypatch.setitem(catalogue.ENTRIES, "cifar-10", entry)
    return batches


def put_binary(batches, directory):
    put({f"{name}.bin": b.tobytes() for name, b in batches.items()}, directory, compressed=False)


def pickled(batch, protocol=2, *, key=str):
    """Return a batch as CIFAR-10's authors, or Python 3 with keys of bytes, would pickle it."""
    content = {"labels": batch[:, 0].tolist(), "data": batch[:, 1:], "batch_label": "a batch"}
    return pickle.dumps(
        {(k if key is str else k.encode()): v for k, v in content.items()}, protocol=protocol
    )


def picture(rng, size=(12, 10), mode="1"):
    shape = (size[1], size[0], 3) if mode == "RGB" else (size[1], size[0])
    return Image.fromarray(rng.integers(256, size=shape, dtype=np.uint8)).convert(mode)


def omniglot_set(monkeypatch, directory, images=4):
    """Store 2 x 3 characters for training and 2 x 2 for evaluation, and register their number."""
    monkeypatch.setitem(catalogue.OMNIGLOT_CLASSES, "images_background", 6)
    monkeypatch.setitem(catalogue.OMNIGLOT_CLASSES, "images_evaluation", 4)
    monkeypatch.setattr("sundsbo_mpi.datasets.characters.OMNIGLOT_IMAGES", images)
    rng = np.random.default_rng(5)
    for part, characters in (("images_background", 3), ("images_evaluation", 2)):
        for alphabet in ("Aleph", "Beth_(old)"):
            for character in range(characters):
                place = directory / part / alphabet / f"character{character:02}"
                place.mkdir(parents=True)
                for number in range(images):
                    picture(rng).save(place / f"{number:02}.png")


def zipped(folder):
    """Return the bytes of the archive of a folder, with the folder as its only top."""
    target = folder.with_suffix(".zip")
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder.parent))
    content = target.read_bytes()
    target.unlink()
    return content
