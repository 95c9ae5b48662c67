"""CIFAR-10's batches, in the binary and in the pickled version."""

from __future__ import annotations

import warnings
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.datasets.catalogue import Entry, Part
from sundsbo_mpi.datasets.files import LIMIT, content, corrupt, find, missing, require_known
from sundsbo_mpi.datasets.pickled import UnpicklingError
from sundsbo_mpi.datasets.samples import Samples
from sundsbo_mpi.datasets.unpickling import unpickle
from sundsbo_mpi.errors import DataNote

if TYPE_CHECKING:
    import numpy.typing as npt


def read_cifar(name: str, entry: Entry, parts: tuple[Part, ...], where: list[Path]) -> Samples:
    """Return the samples of batches, one after the other.

    A record is a byte with the label and the bytes of the image: red, green and blue, each row by
    row.  The batches of both versions hold the same records, so one checksum serves for both.
    Batches with fewer records than they should have, and fewer batches than there should be, are
    used with a ``DataNote``.

    Raises:
        UsageError: There is no batch, or one is damaged or not the known one.
    """
    paths = {part: _find(part, where) for part in parts}
    if not any(paths.values()):
        raise missing(name, entry.title, f"{parts[0].name}.bin", where)
    looked = " and ".join(map(str, where))
    batches = []
    for part, path in paths.items():
        if path is None:
            _note(f"{entry.title}'s {part.name} was not found (looked in {looked}).")
        else:
            batches.append(_checked(path, part, name, entry))
    images = np.concatenate([batch[:, 1:] for batch in batches])
    return Samples(images, np.concatenate([batch[:, 0] for batch in batches]).astype(np.int64))


def _find(part: Part, where: list[Path]) -> Path | None:
    return next((p for end in (".bin", "") if (p := find(part.name + end, where))), None)


def _note(sentence: str) -> None:
    warnings.warn(sentence, DataNote, stacklevel=3)


def _checked(path: Path, part: Part, name: str, entry: Entry) -> npt.NDArray[np.uint8]:
    """Return the records of a batch, shape (N, 1 + bytes of an image), if they are known."""
    found, length = content(path, LIMIT, name), 1 + prod(entry.shape)
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    if plain.suffix == ".bin":
        records = _records(found, length, path, name)
    else:
        try:
            records = _from_pickle(unpickle(found), length)
        except UnpicklingError as error:
            raise corrupt(path, f"is not a batch of CIFAR-10 ({error})", name) from None
    if len(records) > part.samples or records[:, 0].max() >= entry.classes:
        raise corrupt(path, f"has more than {part.samples:,} images or a label above 9", name)
    if len(records) == part.samples:
        require_known(path, records.data, part.sha256, name)
    else:
        _note(
            f"{entry.title}'s {part.name} has {len(records):,} of {part.samples:,} images ({path})."
        )
    return records


def _records(found: bytes, length: int, path: Path, name: str) -> npt.NDArray[np.uint8]:
    if not found or len(found) % length:
        raise corrupt(path, f"has {len(found):,} bytes, expected a multiple of {length:,}", name)
    return np.frombuffer(found, np.uint8).reshape(-1, length)


def _from_pickle(batch: dict[str, Any], length: int) -> npt.NDArray[np.uint8]:
    """Return the records of a pickled batch."""
    images, labels = batch.get("data"), batch.get("labels")
    if not isinstance(images, np.ndarray) or not isinstance(labels, list | np.ndarray):
        raise UnpicklingError("it lacks the images or the labels")
    numbers = list(labels)
    if images.dtype != np.uint8 or images.shape != (len(numbers), length - 1) or not numbers:
        raise UnpicklingError(f"it has images of shape {images.shape} for {len(numbers):,} labels")
    if not all(isinstance(n, int | np.integer) and 0 <= n <= 255 for n in numbers):
        raise UnpicklingError("a label is not a number from 0 to 9")
    return np.concatenate([np.array(numbers, np.uint8)[:, np.newaxis], images], axis=1)
