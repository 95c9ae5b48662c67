"""Where the files of a data set lie, and what to say when one is missing or not as it should be."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.datasets.catalogue import DEBIAN, ENTRIES, Part
from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


LIMIT = 100_000_000
"""Bytes that a file may hold; a pickled batch of CIFAR-10 has up to 45 million."""


class MissingError(UsageError):
    """A file of a data set was not found."""


def places(name: str, data_dir: str | None) -> list[Path]:
    """Return the directories in which the files of the data set may lie, the likeliest first."""
    if data_dir is not None:
        top = Path(data_dir)
        return [*(top / folder for folder in ENTRIES[name].folders), top]
    return [Path(DEBIAN)] if name == "fashion-mnist" else []


def find(file: str, where: Iterable[Path]) -> Path | None:
    """Return the first file of that name, compressed (``.gz``) or not."""
    candidates = (place / name for place in where for name in (f"{file}.gz", file))
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), None)


def missing(name: str, title: str, file: str, where: Iterable[Path]) -> MissingError:
    """Say which file of a data set was not found, where it was sought, and how to get it."""
    looked = " and ".join(map(str, where)) or "no directory, for --data-dir was not given"
    debian = (
        " or, on Debian or Ubuntu, 'apt-get install dataset-fashion-mnist'"
        if name == "fashion-mnist"
        else ""
    )
    return MissingError(
        f"{title}'s {file} was not found (looked in {looked}): where there is a network run "
        f"'sundsbo-mpi data fetch {name} --data-dir DIR'{debian}, or name with --data-dir a "
        "directory laid out as torchvision does."
    )


def corrupt(path: Path, fault: str, name: str) -> UsageError:
    """Say that a file is not as it should be, and what to do about it."""
    return UsageError(
        f"{path} {fault}: remove the file and fetch it again, for example with "
        f"'sundsbo-mpi data fetch {name} --data-dir DIR'."
    )


def content(path: Path, limit: int, name: str) -> bytes:
    """Return the decompressed bytes of a file, of which there may be ``limit``."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            found = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise corrupt(path, f"cannot be read ({error})", name) from error
    if len(found) > limit:
        raise corrupt(path, f"is not the known file (it has more than {limit:,} bytes)", name)
    return found


def is_known(part: Part, where: Iterable[Path]) -> bool:
    """Tell whether a file is there whose decompressed bytes are the published ones."""
    path = find(part.name, where)
    try:
        found = None if path is None else content(path, LIMIT, part.name)
    except UsageError:
        return False
    return found is not None and hashlib.sha256(found).hexdigest() == part.sha256


def require_known(path: Path, found: bytes | memoryview, sha256: str, name: str) -> None:
    """Refuse bytes whose SHA-256 is another one."""
    if hashlib.sha256(found).hexdigest() != sha256:
        raise corrupt(
            path,
            "is not the known file (the SHA-256 of what it holds differs from the published "
            f"{sha256[:12]}...)",
            name,
        )
