"""Reads MatrixMarket files, strictly: SciPy's reader crashes the interpreter on damaged ones.

Source: R. F. Boisvert, R. Pozo, K. A. Remington, "The Matrix Market exchange formats", NISTIR 5935,
1996.

Differences from the source:
    1. Complex, Hermitian and skew-symmetric matrices, which are no weights, are refused.
    2. How entries are divided into lines does not matter.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import coo_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = {"real": 3, "double": 3, "integer": 3, "pattern": 2}
"""Numbers of an entry of a coordinate file: row, column and, but of a pattern, value."""
SYMMETRIES = ("general", "symmetric")
_BANNER = re.compile(rb"%%MatrixMarket[ \t]+matrix((?:[ \t]+[\w-]+){3})[ \t\r]*\n", re.IGNORECASE)
_COMMENTS = rb"(?:[ \t\r]*(?:%[^\n]*)?\n)*"
_SIZES = re.compile(_COMMENTS + rb"[ \t]*((?:\d{1,18}[ \t]+){1,2}\d{1,18})[ \t\r]*(?:\n|\Z)")


class _Head(NamedTuple):
    """What the first lines say; ``sizes`` are rows, columns and, of coordinates, entries."""

    layout: str
    field: str
    symmetry: str
    sizes: tuple[int, ...]


def read_mtx(content: bytes) -> coo_array | NDArray[np.float64]:
    """Return the matrix in float64, sparse where the file lists coordinates.

    Raises:
        ValueError: It is damaged, or claims what it does not hold.
    """
    banner = _BANNER.match(content)
    if banner is None:
        raise ValueError(
            "its first line is no banner like '%%MatrixMarket matrix array real general'"
        )
    layout, field, symmetry = banner[1].decode().lower().split()
    if layout not in ("coordinate", "array") or field not in COLUMNS or symmetry not in SYMMETRIES:
        raise ValueError(
            f"it is '{layout} {field} {symmetry}', expected coordinate or array, "
            f"{', '.join(COLUMNS)}, and {' or '.join(SYMMETRIES)}"
        )
    told = _SIZES.match(content, banner.end())
    sizes = tuple(map(int, told[1].split())) if told else ()
    if told is None or len(sizes) != (3 if layout == "coordinate" else 2):
        raise ValueError("its sizes are missing or of another kind")
    head, body = _Head(layout, field, symmetry, sizes), content[told.end() :]
    return _coordinates(head, body) if layout == "coordinate" else _dense(head, body)


def _numbers(body: bytes, count: int) -> NDArray[np.float64]:
    """Return the numbers that stand between blanks, of which there must be so many."""
    if count > len(body):
        raise ValueError(f"it claims {count} numbers in {len(body)} bytes")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of what is no number
        try:
            found = np.fromstring(body, sep=" ")
        except (ValueError, DeprecationWarning) as error:  # the latter from older NumPy
            raise ValueError("some of its entries are no numbers") from error
    if len(found) != count:
        raise ValueError(f"it holds {len(found)} numbers where its sizes need {count}")
    return found


def _coordinates(head: _Head, body: bytes) -> coo_array:
    rows, columns, entries = head.sizes
    each = COLUMNS[head.field]
    table = _numbers(body, entries * each).reshape(-1, each)
    places = table[:, :2]
    if not ((places >= 1) & (places <= [rows, columns]) & (places % 1 == 0)).all():
        raise ValueError(f"an entry lies outside its {rows} rows and {columns} columns")
    i, j = (places.astype(np.int64) - 1).T
    values = table[:, 2] if each == 3 else np.ones(len(table))
    if head.symmetry == "symmetric":
        off = i != j
        i, j = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
        values = np.concatenate([values, values[off]])
    return coo_array((values, (i, j)), shape=(rows, columns))


def _dense(head: _Head, body: bytes) -> NDArray[np.float64]:
    """Read columns from top to bottom, those of a symmetric matrix from the diagonal."""
    n, columns = head.sizes
    if head.symmetry == "general":
        return _numbers(body, n * columns).reshape(columns, n).T
    if n != columns:
        raise ValueError(f"it is symmetric with {n} rows and {columns} columns")
    numbers = _numbers(body, n * (n + 1) // 2)
    full = np.zeros((n, n))
    upper = np.triu_indices(n)  # row by row, as the lower triangle is column by column
    full[upper] = numbers
    full.T[upper] = numbers
    return full
