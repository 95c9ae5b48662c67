"""The IDX files of MNIST and Fashion-MNIST."""

from __future__ import annotations

import warnings
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.datasets.catalogue import Entry, Part
from sundsbo_mpi.datasets.files import content, corrupt, find, missing, require_known
from sundsbo_mpi.datasets.samples import Samples
from sundsbo_mpi.errors import DataNote

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt


def read_idx(name: str, entry: Entry, parts: tuple[Part, ...], where: list[Path]) -> Samples:
    """Return the samples of a file of images and a file of labels.

    Files with fewer samples than they should have are used with a ``DataNote``.

    Raises:
        UsageError: A file is missing, damaged, or not the known one.
    """
    images_part, labels_part = parts
    images, _ = _array(name, entry, images_part, entry.shape[1:], where)
    labels, path = _array(name, entry, labels_part, (), where)
    if len(images) != len(labels):
        raise corrupt(path, f"has {len(labels):,} labels for {len(images):,} images", name)
    if labels.size and labels.max() >= entry.classes:
        raise corrupt(path, f"has a label {labels.max()}, expected 0 to {entry.classes - 1}", name)
    if len(labels) < labels_part.samples:
        warnings.warn(
            f"{entry.title}'s {images_part.name} has {len(labels):,} of "
            f"{images_part.samples:,} images (in {path.parent}).",
            DataNote,
            stacklevel=2,
        )
    return Samples(images.reshape(len(images), -1), labels.astype(np.int64))


def _array(
    name: str, entry: Entry, part: Part, each: tuple[int, ...], where: list[Path]
) -> tuple[npt.NDArray[np.uint8], Path]:
    """Return what a file holds, shape (samples, *each), and the file.

    An IDX file starts with two zero bytes, the type (8: unsigned bytes), the number of dimensions,
    and each dimension as a big-endian 32-bit integer.
    """
    path = find(part.name, where)
    if path is None:
        raise missing(name, entry.title, f"{part.name}.gz", where)
    header = 4 + 4 * (1 + len(each))
    found = content(path, header + part.samples * prod(each), name)
    shape = tuple(int.from_bytes(found[at : at + 4], "big") for at in range(4, header, 4))
    if found[:4] != bytes([0, 0, 8, 1 + len(each)]) or shape[1:] != each:
        raise corrupt(path, "does not start as it should", name)
    if len(found) != header + prod(shape) or not shape[0]:
        raise corrupt(path, f"has {len(found) - header:,} bytes for {shape[0]:,} samples", name)
    if shape[0] == part.samples:
        require_known(path, found, part.sha256, name)
    return np.frombuffer(found, np.uint8, offset=header).reshape(shape), path
