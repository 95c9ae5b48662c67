"""The digits that are part of scikit-learn."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from sundsbo_mpi.datasets.samples import CharacterSet, Dataset, Samples
from sundsbo_mpi.randomness import Stream, generator

SHAPE = (1, 8, 8)
CLASSES = 10


def digits(seed: int) -> Dataset:
    """1,000 training, 500 validation and 297 test images, divided at random; values 0..16."""
    everything = _everything()
    order = generator(seed, Stream.SPLIT).permutation(len(everything.labels))
    train, validation, test = (everything.at(part) for part in np.split(order, [1_000, 1_500]))
    mean, std = np.array([train.images.mean()]), np.array([train.images.std()])
    return Dataset(train, validation, test, SHAPE, CLASSES, mean, std)


def digit_characters(seed: int) -> CharacterSet:
    """Classes for learning from few images: each digit upright, and turned by a quarter.

    Four digits drawn at random are for training (eight classes), three for validation and three
    for test (six classes each), so that five ways are possible in each.  Values are 0..16.
    """
    everything = _everything()
    upright = [everything.images[everything.labels == label] for label in range(CLASSES)]
    parts = np.split(generator(seed, Stream.SPLIT).permutation(CLASSES), [4, 7])
    train, validation, test = (
        tuple(images for digit in part for images in (upright[digit], _turned(upright[digit])))
        for part in parts
    )
    return CharacterSet(train, validation, test, SHAPE)


def _turned(
    images: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    turned = np.rot90(images.reshape(-1, *SHAPE[1:]), axes=(1, 2))
    return np.ascontiguousarray(turned).reshape(len(images), -1)


def _everything() -> Samples:
    # Only its file: to import scikit-learn takes as long as to import torch.
    package = find_spec("sklearn")
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    table = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    return Samples(table[:, :-1], table[:, -1].astype(np.int64))
