"""Classes of pictures in folders or in an archive, read with Pillow."""

from __future__ import annotations

import lzma
import os
import warnings
import zipfile
import zlib
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from sundsbo_mpi.errors import UsageError, printable, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

FORMATS = {
    "BMP": (".bmp",),
    "GIF": (".gif",),
    "JPEG": (".jpg", ".jpeg"),
    "PNG": (".png",),
    "PPM": (".pgm", ".ppm"),
    "TIFF": (".tif", ".tiff"),
    "WEBP": (".webp",),
}
"""Pillow's name of each format that is read, and how the names of its files end."""

CHUNK = 2**20
"""Bytes that are read at once."""

SUFFIXES = tuple(suffix for suffixes in FORMATS.values() for suffix in suffixes)

FAULTS = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
"""What opening and reading a damaged file or archive, or one of an unknown kind, raises."""


class Pictures(NamedTuple):
    """Names of the pictures of each class, both sorted, and the function that opens one."""

    classes: dict[str, list[str]]
    open: Callable[[str], IO[bytes]]
    place: Path

    def read(self, name: str, shape: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
        """Return a class, shape (images, channels * height * width), scaled to the shape."""
        return np.stack([self._one(picture, shape) for picture in self.classes[name]])

    def is_grey(self) -> bool:
        """Tell whether the first picture of the first class has one channel."""
        from PIL import Image

        first = next(iter(self.classes.values()))[0]
        with self._refusing(first), self.open(first) as file:
            return Image.open(file, formats=list(FORMATS)).mode in ("1", "L", "LA")

    def _one(self, picture: str, shape: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
        from PIL import Image

        channels, height, width = shape
        with self._refusing(picture), self.open(picture) as file:
            plain = Image.open(file, formats=list(FORMATS)).convert("L" if channels == 1 else "RGB")
            scaled = plain.resize((width, height), Image.Resampling.BILINEAR)
        values = np.asarray(scaled, np.uint8).reshape(height, width, channels)
        return np.moveaxis(values, -1, 0).reshape(-1)

    @contextmanager
    def _refusing(self, picture: str) -> Iterator[None]:
        """Turn all that Pillow raises over a damaged or a huge file into a refusal."""
        from PIL import Image

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what Pillow reads nevertheless
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                yield
        # Its decoders were not written for damaged files: they raise whatever comes up.
        except Exception as error:
            raise UsageError(
                f"{self.place / picture} is not a picture that can be read "
                f"({printable(reason(error))}): restore the file, or remove it to do without it."
            ) from error


def folder_pictures(place: Path, depth: int) -> Pictures:
    """Find the pictures of the folders that lie ``depth`` levels below a place."""
    try:
        found = list(place.glob("/".join(["*"] * (depth + 1))))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{place} is not a directory that can be read ({error}): name another with --data-dir."
        ) from error
    names = (path.relative_to(place).as_posix() for path in found if os.path.isfile(path))
    return Pictures(_grouped(names, depth), lambda name: (place / name).open("rb"), place)


@contextmanager
def zipped_pictures(archive: Path, depth: int) -> Iterator[Pictures]:
    """Find the pictures of an archive whose folders lie ``depth`` levels below its only folder."""
    try:
        file = zipfile.ZipFile(archive)
    except FAULTS as error:
        raise UsageError(
            f"{archive} is not an archive that can be read ({error}): fetch it again."
        ) from error
    with file:
        top = f"{archive.stem}/"
        names = (name.removeprefix(top) for name in file.namelist() if name.startswith(top))
        yield Pictures(_grouped(names, depth), lambda name: file.open(top + name), archive)


def damaged_member(archive: Path) -> str | None:
    """Return the name of the first file of an archive that cannot be read; None if all can."""
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            try:
                with file.open(member) as opened:
                    while opened.read(CHUNK):
                        pass
            except FAULTS:
                return member.filename
    return None


def _grouped(names: Iterable[str], depth: int) -> dict[str, list[str]]:
    """Return the names of pictures by the folder that they lie in, without hidden ones."""
    classes: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        path = PurePosixPath(name)
        hidden = any(part.startswith(".") for part in path.parts)
        if len(path.parts) == depth + 1 and path.suffix.lower() in SUFFIXES and not hidden:
            classes[path.parent.as_posix()].append(name)
    return dict(sorted(classes.items()))
