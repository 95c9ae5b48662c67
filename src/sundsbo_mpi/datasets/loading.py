"""Finds the reader of a data set, and divides what it reads."""

from __future__ import annotations

import numpy as np

from sundsbo_mpi.datasets.catalogue import ENTRIES
from sundsbo_mpi.datasets.characters import read_folders, read_omniglot
from sundsbo_mpi.datasets.cifar import read_cifar
from sundsbo_mpi.datasets.digits import digit_characters, digits
from sundsbo_mpi.datasets.files import places
from sundsbo_mpi.datasets.idx import read_idx
from sundsbo_mpi.datasets.samples import CharacterSet, Dataset
from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.randomness import Stream, generator

DATASETS: dict[str, str] = {
    "digits": "1,797 images of 8 x 8 pixels, part of scikit-learn",
    "mnist": "70,000 digits of 28 x 28 pixels, read from --data-dir",
    "fashion-mnist": "70,000 images of 28 x 28 pixels, read from --data-dir or Debian's package",
    "cifar-10": "60,000 colour images of 32 x 32 pixels, read from --data-dir",
}
"""Name of each data set of labelled images and one line about it."""

CHARACTER_SETS: dict[str, str] = {
    "digits": "10 digits of 8 x 8 pixels, upright and turned, part of scikit-learn",
    "omniglot": "1,623 characters, 20 images of each, read from --data-dir",
    "folder": "images of any kind, one folder for each class, below --data-dir",
}
"""Name of each set of classes to learn from few images of, and one line about it."""

LARGEST_SIDE = 1_000
"""Pixels to which images may be scaled."""

READERS = {"mnist": read_idx, "fashion-mnist": read_idx, "cifar-10": read_cifar}


def load_dataset(name: str, data_dir: str | None, seed: int) -> Dataset:
    """Read a data set and divide its training file at random; the test file is for test.

    Of MNIST and Fashion-MNIST 50,000 samples are for training and 10,000 for validation, of
    CIFAR-10 40,000 and 10,000; of an incomplete set the same shares, with a ``DataNote``.

    Args:
        name: A key of ``DATASETS``.
        data_dir: Directory laid out as torchvision does (``MNIST/raw``, ``FashionMNIST/raw``,
            ``cifar-10-batches-bin``, ``cifar-10-batches-py``), or with the files themselves; None
            stands for Debian's directory of Fashion-MNIST.  Digits need none.
        seed: Decides which samples are for training and which for validation (digits: and test).

    Raises:
        UsageError: The name is unknown, or a file is missing, unreadable or not the known one.
    """
    if name not in DATASETS:
        raise unknown("data set", name, DATASETS)
    if name == "digits":
        return digits(seed)
    entry = ENTRIES[name]
    where = places(name, data_dir)
    file, test = (READERS[name](name, entry, part, where) for part in (entry.train, entry.test))
    order = generator(seed, Stream.SPLIT).permutation(len(file.labels))
    cut = len(order) * entry.training // (entry.training + 1)
    mean, std = 255 * np.array(entry.mean), 255 * np.array(entry.std)
    train, validation = file.at(order[:cut]), file.at(order[cut:])
    return Dataset(train, validation, test, entry.shape, entry.classes, mean, std)


def load_characters(
    name: str, data_dir: str | None, seed: int, size: int | None = None
) -> CharacterSet:
    """Read classes with their images, and divide the classes into three disjoint sets.

    Args:
        name: A key of ``CHARACTER_SETS``.
        data_dir: For ``omniglot`` a directory with torchvision's ``omniglot-py``, for ``folder``
            the directory with the folders.  Digits need none.
        seed: Decides which classes are for what, where the data leave it open.
        size: Height and width in pixels to which images are scaled; None stands for the customary
            ones: 28 for Omniglot, 84 for folders, and 8 for digits, which are not scaled.

    Raises:
        UsageError: The name is unknown, or files are missing or unreadable.
    """
    if name not in CHARACTER_SETS:
        raise unknown("set of classes", name, CHARACTER_SETS)
    if size is not None and not 1 <= size <= LARGEST_SIDE:
        raise UsageError(
            f"got images of size {size}, expected at least 1 pixel and at most {LARGEST_SIDE:,}: "
            "correct it."
        )
    if name == "digits":
        if size not in (None, 8):
            raise UsageError(
                f"digits have 8 x 8 pixels, got size {size}: leave it out or choose another set."
            )
        return digit_characters(seed)
    if name == "omniglot":
        return read_omniglot(data_dir, seed, size or 28)
    return read_folders(data_dir, seed, size or 84)
