"""Fetches what is missing of a data set; for machines with a network, such as login nodes."""

from __future__ import annotations

import hashlib
import os
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

from sundsbo_mpi.data_notes import noted
from sundsbo_mpi.datasets.catalogue import (
    ENTRIES,
    OMNIGLOT_DOWNLOADS,
    OMNIGLOT_FOLDER,
    Download,
    Entry,
    Part,
)
from sundsbo_mpi.datasets.files import is_known, places
from sundsbo_mpi.datasets.survey import COMPLETE, VERIFIED, omniglot_state, survey
from sundsbo_mpi.errors import UsageError, unknown

FETCHED = (*ENTRIES, "omniglot")
"""The data sets that can be fetched."""

TIMEOUT_SECONDS = 30
"""How long a server may be silent."""

READABLE = 0o644
"""Permissions of what is fetched: temporary files can be read by their owner alone."""


def fetch(
    name: str, data_dir: str, mirror: str | None = None, *, progress: bool = False
) -> list[Path]:
    """Fetch the files of a data set if it is missing, incomplete or damaged.

    Every file gets its name only after its published checksum was found right, and nothing is
    written outside the directory.

    Args:
        name: One of ``FETCHED``.
        data_dir: Where torchvision's layout begins; it is made where it does not exist.
        mirror: Address of a directory with the files, instead of the public ones.
        progress: Whether to draw a bar on standard error.

    Returns:
        The files that were written: none where the data set is there already.

    Raises:
        UsageError: The name is unknown, the network or the disk fails, or a checksum differs.
    """
    if name not in FETCHED:
        raise unknown("data set", name, FETCHED)
    if survey(name, data_dir).state in (VERIFIED, COMPLETE):
        return []
    source, top = _Source(mirror, progress), Path(data_dir)
    try:
        if name == "cifar-10":
            written = _batches(ENTRIES[name], top, source)
        else:
            folder = top / (OMNIGLOT_FOLDER if name == "omniglot" else ENTRIES[name].folders[0])
            written = [source.file(download, folder) for download in _wanted(name, data_dir)]
    except OSError as error:
        raise UsageError(
            f"{name} could not be stored in {top} ({error}): make room or name another directory."
        ) from error
    found = survey(name, data_dir)
    if found.state not in (VERIFIED, COMPLETE):
        raise UsageError(f"{name} was fetched, but another file comes before: {found.remarks[0]}")
    return written


def _wanted(name: str, data_dir: str) -> list[Download]:
    """Return the downloads whose files are not there or not as they should be."""
    if name == "omniglot":
        parts = OMNIGLOT_DOWNLOADS.items()
        return [download for part, download in parts if not _has_characters(part, data_dir)]
    entry, where = ENTRIES[name], places(name, data_dir)
    files = zip((*entry.train, *entry.test), entry.downloads, strict=True)
    return [download for part, download in files if not is_known(part, where)]


def _has_characters(part: str, data_dir: str) -> bool:
    with noted():
        try:
            return omniglot_state(part, data_dir) in (VERIFIED, COMPLETE)
        except UsageError:
            return False


class _Source(NamedTuple):
    """Where files come from."""

    mirror: str | None
    progress: bool

    def file(self, download: Download, folder: Path) -> Path:
        """Fetch a file into a folder."""
        import pooch
        from requests import RequestException

        pooch.get_logger().setLevel("WARNING")
        url = f"{self.mirror.rstrip('/')}/{download.file}" if self.mirror else download.url
        downloader = pooch.HTTPDownloader(progressbar=self.progress, timeout=TIMEOUT_SECONDS)
        try:
            path = pooch.retrieve(url, download.checksum, download.file, folder, None, downloader)
        except RequestException as error:
            raise UsageError(
                f"{url} could not be fetched ({_first_line(error)}): run this where there is a "
                "network, or name with --mirror an address that can be reached."
            ) from error
        except ValueError as error:
            raise UsageError(
                f"{url} was refused ({_first_line(error)}): name another address with --mirror."
            ) from error
        Path(path).chmod(READABLE)
        return Path(path)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _batches(entry: Entry, top: Path, source: _Source) -> list[Path]:
    """Fetch CIFAR-10's binary version, and store its batches; the archive is not kept."""
    (download,) = entry.downloads
    folder = top / entry.folders[0]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=top) as temporary:
        archive = source.file(download, Path(temporary))
        wanted = {f"{folder.name}/{part.name}.bin": part for part in (*entry.train, *entry.test)}
        written = []
        with tarfile.open(archive, "r|gz") as packed:
            for member in packed:
                part = wanted.get(member.name)
                unpacked = packed.extractfile(member) if member.isreg() else None
                if part is not None and unpacked is not None:
                    at = Path(temporary) / part.name
                    at.write_bytes(unpacked.read())
                    written.append(_store(at, part, folder))
    return written


def _store(at: Path, part: Part, folder: Path) -> Path:
    """Move a batch to where it belongs if it is the published one."""
    with at.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != part.sha256:
        raise UsageError(f"the archive's {part.name} is not the known file: fetch it elsewhere.")
    target = folder / f"{part.name}.bin"
    os.replace(at, target)
    return target
