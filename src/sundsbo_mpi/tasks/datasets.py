"""Images with labels, divided into training, validation and test samples.

Nothing here imports torch; scikit-learn, which takes seconds, is imported when digits are loaded.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.errors import UsageError, unknown
from sundsbo_mpi.tasks.sampling import Stream, generator

if TYPE_CHECKING:
    import numpy.typing as npt

DATASETS: dict[str, str] = {
    "digits": "1,797 images of 8 x 8 pixels, part of scikit-learn",
    "fashion-mnist": "70,000 images of 28 x 28 pixels, read from --data-dir or Debian's package",
}
"""Name of each data set and one line about it."""

CLASSES = 10
"""Number of classes of both data sets."""

DEBIAN = Path("/usr/share/datasets/fashion-mnist")
"""Where Debian's package dataset-fashion-mnist puts its files."""

SHA256 = {
    "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
"""Files of Fashion-MNIST and the SHA-256 of their decompressed bytes."""


@dataclass(frozen=True)
class Samples:
    """Images of shape (N, pixels) as stored, uint8, and their true classes, (N,), int64."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]

    def at(self, places: npt.NDArray[np.int64]) -> Samples:
        """Return the samples at the places, in their order."""
        return Samples(self.images[places], self.labels[places])


@dataclass(frozen=True)
class Dataset:
    """Three disjoint sets of samples, and mean and standard deviation of a stored pixel."""

    train: Samples
    validation: Samples
    test: Samples
    mean: float
    std: float


def load_dataset(name: str, data_dir: str | None, seed: int) -> Dataset:
    """Read a data set and divide it at random.

    Args:
        name: A key of ``DATASETS``.
        data_dir: Directory with Fashion-MNIST's files, or with torchvision's
            ``FashionMNIST/raw``; None stands for Debian's directory.  Digits need none.
        seed: Decides which samples are for training and which for validation (digits: and test).

    Raises:
        UsageError: The name is unknown, or a file is missing, unreadable or not the known one.
    """
    if name == "digits":
        return _digits(seed)
    if name == "fashion-mnist":
        return _fashion_mnist(data_dir, seed)
    raise unknown("data set", name, DATASETS)


def _digits(seed: int) -> Dataset:
    """1,000 training, 500 validation and 297 test images of scikit-learn's digits."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    everything = Samples(images.astype(np.uint8), labels.astype(np.int64))
    order = generator(seed, Stream.SPLIT).permutation(len(labels))
    train, validation, test = (everything.at(part) for part in np.split(order, [1_000, 1_500]))
    return Dataset(train, validation, test, float(train.images.mean()), float(train.images.std()))


def _fashion_mnist(data_dir: str | None, seed: int) -> Dataset:
    """Five sixths of the training file for training, one for validation; the test file for test."""
    places = [Path(data_dir) / "FashionMNIST" / "raw", Path(data_dir)] if data_dir else [DEBIAN]
    train, test = (
        Samples(_idx(f"{part}-images-idx3-ubyte", places), _labels(part, places))
        for part in ("train", "t10k")
    )
    order = generator(seed, Stream.SPLIT).permutation(len(train.labels))
    cut = len(order) * 5 // 6
    # The customary mean and standard deviation of a pixel in [0, 1].
    return Dataset(train.at(order[:cut]), train.at(order[cut:]), test, 0.286 * 255, 0.353 * 255)


def _labels(part: str, places: list[Path]) -> npt.NDArray[np.int64]:
    return _idx(f"{part}-labels-idx1-ubyte", places)[:, 0].astype(np.int64)


def _idx(name: str, places: list[Path]) -> npt.NDArray[np.uint8]:
    """Return a file's bytes after the header, shape (samples, bytes of one sample).

    An IDX file starts with two zero bytes, the type (8: unsigned bytes), the number of dimensions,
    and each dimension as a big-endian 32-bit integer.
    """
    content = _checked(name, places)
    dimensions = content[3]
    samples = int.from_bytes(content[4:8], "big")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(samples, -1)


def _checked(name: str, places: list[Path]) -> bytes:
    """Return the decompressed bytes of the first file of that name, if they are the known ones."""
    candidates = [place / file for place in places for file in (f"{name}.gz", name)]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        looked = " and ".join(str(place) for place in places)
        raise UsageError(
            f"Fashion-MNIST's {name}.gz was not found (looked in {looked}): on Debian or Ubuntu "
            "run 'apt-get install dataset-fashion-mnist', or name with --data-dir a directory "
            "that holds torchvision's FashionMNIST/raw or the four files themselves."
        )
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read ({error}): fetch the file again.") from error
    if hashlib.sha256(content).hexdigest() != SHA256[name]:
        raise UsageError(
            f"{path} is not the known file (the SHA-256 of its decompressed bytes differs from "
            f"{SHA256[name][:12]}...): fetch Fashion-MNIST again."
        )
    return content
