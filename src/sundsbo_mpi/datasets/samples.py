"""What a data set is once it is read: images with labels, or images by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class Samples:
    """Images and their true classes: some of those stored, copied when they are asked for.

    ``stored`` are as read, uint8, shape (M, channels * height * width), channel by channel and row
    by row; ``labels`` are int64, shape (N,); ``places`` are those of the N images in ``stored``,
    None where these are all of them in their order.
    """

    stored: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64] | None = None

    @property
    def images(self) -> npt.NDArray[np.uint8]:
        """All images, one row each."""
        return self.stored if self.places is None else self.stored[self.places]

    def at(self, places: npt.NDArray[np.int64]) -> Samples:
        """Return the samples at the places, in their order."""
        found = places if self.places is None else self.places[places]
        return Samples(self.stored, self.labels[places], found)


@dataclass(frozen=True)
class Dataset:
    """Three disjoint sets of samples, and what to know of their images.

    ``shape`` is (channels, height, width); labels are 0, ..., ``classes`` - 1; ``mean`` and
    ``std``, float64, shape (channels,), are those of a stored value 0..255.
    """

    train: Samples
    validation: Samples
    test: Samples
    shape: tuple[int, int, int]
    classes: int
    mean: npt.NDArray[np.float64]
    std: npt.NDArray[np.float64]


@dataclass(frozen=True)
class CharacterSet:
    """Three sets of classes, none shared, for learning from few images of a class.

    Each class is a uint8 array of shape (images, channels * height * width), channel by channel
    and row by row; ``shape`` is (channels, height, width).
    """

    train: tuple[npt.NDArray[np.uint8], ...]
    validation: tuple[npt.NDArray[np.uint8], ...]
    test: tuple[npt.NDArray[np.uint8], ...]
    shape: tuple[int, int, int]
