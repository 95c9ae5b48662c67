"""Classes to learn from few images of: Omniglot, and any folder of class folders."""

from __future__ import annotations

import os
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sundsbo_mpi.datasets.catalogue import OMNIGLOT_CLASSES, OMNIGLOT_FOLDER, OMNIGLOT_IMAGES
from sundsbo_mpi.datasets.files import corrupt, missing
from sundsbo_mpi.datasets.pictures import SUFFIXES, Pictures, folder_pictures, zipped_pictures
from sundsbo_mpi.datasets.samples import CharacterSet
from sundsbo_mpi.errors import DataNote, UsageError
from sundsbo_mpi.randomness import Stream, generator

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import numpy.typing as npt

PARTS = ("train", "val", "test")
"""Folders that divide the class folders, as is customary for MiniImageNet."""

SHARES = (0.64, 0.80)
"""Where classes that are not divided are cut: 64, 16 and 20 of 100, as those of MiniImageNet."""


def read_omniglot(data_dir: str | None, seed: int, size: int) -> CharacterSet:
    """Return Omniglot's characters, whose black ink on white paper is inverted: 255 is ink.

    The background set is for training; the characters of the evaluation set are divided at random
    into halves for validation and test.  An incomplete set is used with a ``DataNote``.

    Source: B. M. Lake, R. Salakhutdinov, J. B. Tenenbaum, "Human-level concept learning through
    probabilistic program induction", Science 350, 2015.  Differences from the customary protocol
    of O. Vinyals et al. (2016, arXiv:1606.04080):

    1. Characters turned by quarters are not used as further classes.
    2. The authors' division into a background and an evaluation set is kept, where it is customary
       to draw 1,200 of all characters for training.

    Args:
        data_dir: Directory with torchvision's ``omniglot-py``, or with what lies in it: the
            folders ``images_background`` and ``images_evaluation``, or archives (.zip) of them.
        seed: Decides which classes are for validation and which for test.
        size: Height and width to which images are scaled.

    Raises:
        UsageError: A part is missing or damaged, or has more than it should have.
    """
    train, evaluation = (_characters(part, data_dir, size) for part in OMNIGLOT_CLASSES)
    order = generator(seed, Stream.SPLIT).permutation(len(evaluation))
    validation, test = (tuple(evaluation[i] for i in half) for half in np.array_split(order, 2))
    return CharacterSet(tuple(train), validation, test, (1, size, size))


def omniglot_places(data_dir: str | None) -> list[Path]:
    """Return the directories in which the parts of Omniglot may lie, the likeliest first."""
    return [Path(data_dir) / OMNIGLOT_FOLDER, Path(data_dir)] if data_dir is not None else []


def open_omniglot(part: str, data_dir: str | None) -> AbstractContextManager[Pictures]:
    """Find the pictures of a part of Omniglot, by alphabet and character; an archive comes first.

    Raises:
        MissingError: There is neither the folder nor the archive.
    """
    where = omniglot_places(data_dir)
    for place in where:
        if os.path.isfile(place / f"{part}.zip"):
            return zipped_pictures(place / f"{part}.zip", depth=2)
        if os.path.isdir(place / part):
            return nullcontext(folder_pictures(place / part, depth=2))
    raise missing("omniglot", "Omniglot", f"folder {part} or archive {part}.zip", where)


def count_omniglot(part: str, pictures: Pictures) -> bool:
    """Tell whether a part has all its characters with all their images; note or refuse others."""
    expected = OMNIGLOT_CLASSES[part]
    counts = [len(drawn) for drawn in pictures.classes.values()]
    if len(counts) > expected or max(counts, default=0) > OMNIGLOT_IMAGES or not counts:
        raise corrupt(
            pictures.place,
            f"has {len(counts):,} characters of up to {max(counts, default=0)} images, expected "
            f"{expected:,} of {OMNIGLOT_IMAGES}",
            "omniglot",
        )
    complete = sum(counts) == expected * OMNIGLOT_IMAGES
    if not complete:
        warnings.warn(
            f"Omniglot's {part} has {sum(counts):,} of {expected * OMNIGLOT_IMAGES:,} images and "
            f"{len(counts):,} of {expected:,} characters ({pictures.place}).",
            DataNote,
            stacklevel=2,
        )
    return complete


def _characters(part: str, data_dir: str | None, size: int) -> list[npt.NDArray[np.uint8]]:
    """Return the characters of a part in the order of their names, 255 being ink."""
    with open_omniglot(part, data_dir) as pictures:
        count_omniglot(part, pictures)
        return [255 - pictures.read(name, (1, size, size)) for name in pictures.classes]


def read_folders(data_dir: str | None, seed: int, size: int) -> CharacterSet:
    """Return the classes of a directory in which each folder of pictures is a class.

    Where it has the folders ``train``, ``val`` and ``test``, class folders lie in these; otherwise
    they lie in the directory itself and are divided at random, 64, 16 and 20 of 100.  Pictures
    have one channel where the first of them has, otherwise three; they are scaled to squares.

    Args:
        data_dir: The directory, such as that of MiniImageNet.
        seed: Decides which classes are for what where no folders do.
        size: Height and width to which pictures are scaled.

    Raises:
        UsageError: There is no such directory, it has too few classes, or a picture is damaged.
    """
    if data_dir is None:
        raise UsageError(
            "the data set 'folder' needs --data-dir: name a directory with a folder for each class."
        )
    top = Path(data_dir)
    if all(os.path.isdir(top / part) for part in PARTS):
        found = [folder_pictures(top / part, depth=1) for part in PARTS]
        chosen = [list(pictures.classes) for pictures in found]
    else:
        found = [folder_pictures(top, depth=1)] * len(PARTS)
        chosen = _divided(list(found[0].classes), seed)
    for part, names in zip(PARTS, chosen, strict=True):
        if not names:
            raise UsageError(
                f"{top} has no class for {part}: it needs at least three folders with pictures "
                f"({', '.join(SUFFIXES)}), or such folders in each of {', '.join(PARTS)}."
            )
    shape = (1 if found[0].is_grey() else 3, size, size)
    train, validation, test = (
        tuple(pictures.read(name, shape) for name in names)
        for pictures, names in zip(found, chosen, strict=True)
    )
    return CharacterSet(train, validation, test, shape)


def _divided(names: list[str], seed: int) -> list[list[str]]:
    """Divide the classes at random, with at least one for each part if there are three."""
    order = generator(seed, Stream.SPLIT).permutation(len(names))
    last = max(len(names) - 1, 0)
    second = min(max(round(SHARES[1] * len(names)), 2), last)
    first = min(round(SHARES[0] * len(names)), max(second - 1, 0))
    return [[names[i] for i in sorted(part)] for part in np.split(order, [first, second])]
