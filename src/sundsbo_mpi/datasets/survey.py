"""What is there of a data set, and whether it is what its authors published."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from sundsbo_mpi.data_notes import noted
from sundsbo_mpi.datasets.catalogue import ENTRIES, OMNIGLOT_CLASSES, OMNIGLOT_DOWNLOADS
from sundsbo_mpi.datasets.characters import count_omniglot, omniglot_places, open_omniglot
from sundsbo_mpi.datasets.files import MissingError, corrupt, places
from sundsbo_mpi.datasets.loading import DATASETS, READERS, load_characters, load_dataset
from sundsbo_mpi.datasets.pictures import damaged_member
from sundsbo_mpi.errors import UsageError, unknown

SURVEYED = ("digits", *ENTRIES, "omniglot")
"""The data sets that have a name, as opposed to folders."""

VERIFIED, COMPLETE, INCOMPLETE = "verified", "complete", "incomplete"
MISSING, CORRUPT, EMBEDDED = "missing", "corrupt", "embedded"
"""A verified set has the published checksums; a complete one has all images, but is stored in a
form for which no checksum is published; an embedded one is part of a library."""


class Finding(NamedTuple):
    """The state of a data set, the directories it was found in, and sentences about it."""

    state: str
    where: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def survey(name: str, data_dir: str | None) -> Finding:
    """Look for a data set and compare its files with the published checksums.

    Raises:
        UsageError: The name is unknown.
    """
    if name not in SURVEYED:
        raise unknown("data set", name, SURVEYED)
    if name == "digits":
        return Finding(EMBEDDED, ("scikit-learn",))
    where = tuple(map(str, _where(name, data_dir)))
    with noted() as notes:
        try:
            state = _omniglot(data_dir) if name == "omniglot" else _labelled(name, data_dir)
        except MissingError as error:
            return Finding(MISSING, where, (str(error),))
        except UsageError as error:
            return Finding(CORRUPT, where, (str(error),))
    return Finding(INCOMPLETE if notes else state, where, tuple(notes))


def _where(name: str, data_dir: str | None) -> list[Path]:
    """Return the directories in which some file of the data set lies."""
    if name == "omniglot":
        names = [f"{part}{suffix}" for part in OMNIGLOT_CLASSES for suffix in (".zip", "")]
        likely = omniglot_places(data_dir)
    else:
        parts = (*ENTRIES[name].train, *ENTRIES[name].test)
        names = [f"{part.name}{end}" for part in parts for end in (".gz", "", ".bin", ".bin.gz")]
        likely = places(name, data_dir)
    return [place for place in likely if any(os.path.exists(place / file) for file in names)]


def _labelled(name: str, data_dir: str | None) -> str:
    entry = ENTRIES[name]
    for parts in (entry.train, entry.test):
        READERS[name](name, entry, parts, places(name, data_dir))
    return VERIFIED


def _omniglot(data_dir: str | None) -> str:
    """Return the state of both parts, VERIFIED or COMPLETE where neither left a note."""
    states = {omniglot_state(part, data_dir) for part in OMNIGLOT_CLASSES}
    return VERIFIED if states == {VERIFIED} else COMPLETE


def omniglot_state(part: str, data_dir: str | None) -> str:
    """Count the pictures of a part of Omniglot, and compare an archive with its published MD5.

    Raises:
        UsageError: The part is missing or damaged.
    """
    with open_omniglot(part, data_dir) as pictures:
        if not count_omniglot(part, pictures):
            return INCOMPLETE
        if not pictures.place.is_file():
            return COMPLETE
        algorithm, _, digest = OMNIGLOT_DOWNLOADS[part].checksum.partition(":")
        with pictures.place.open("rb") as file:
            if hashlib.file_digest(file, algorithm).hexdigest() == digest:
                return VERIFIED
    damaged = damaged_member(pictures.place)
    if damaged is not None:
        raise corrupt(pictures.place, f"has a damaged {damaged}", "omniglot")
    return COMPLETE


def check(name: str, data_dir: str | None) -> str:
    """Read a data set as a run would, and say in a sentence what it has.

    Raises:
        UsageError: The name is unknown, or the data are missing or damaged.
    """
    if name in DATASETS:
        data = load_dataset(name, data_dir, seed=0)
        parts = (data.train, data.validation, data.test)
        counts = [f"{len(part.labels):,}" for part in parts]
        return (
            f"{name} has {counts[0]} training, {counts[1]} validation and {counts[2]} test images."
        )
    if name not in ("omniglot", "folder"):
        raise unknown("data set", name, (*SURVEYED, "folder"))
    characters = load_characters(name, data_dir, seed=0)
    classes = (characters.train, characters.validation, characters.test)
    counts = [f"{len(part):,} ({sum(map(len, part)):,})" for part in classes]
    return (
        f"{name} has {counts[0]} training, {counts[1]} validation and {counts[2]} test classes "
        "(and images)."
    )
