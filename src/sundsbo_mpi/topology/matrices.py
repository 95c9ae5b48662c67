"""Matrices as bytes: .npz (dense or sparse), .npy, text and MatrixMarket, read and written.

No format here can carry code: pickled objects are refused.
"""

from __future__ import annotations

import zipfile
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from sundsbo_mpi.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sundsbo_mpi.topology.weights import Weights

NODE_IDS = "node_ids"


def _read_npz(content: bytes) -> tuple[Any, tuple[str, ...]]:
    """Read a sparse matrix as saved by SciPy, or the only matrix of a NumPy archive."""
    if not zipfile.is_zipfile(BytesIO(content)):
        raise ValueError("it is no .npz archive")
    with np.load(BytesIO(content), allow_pickle=False) as archive:
        node_ids = tuple(map(str, archive[NODE_IDS])) if NODE_IDS in archive else ()
        names = [name for name in archive.files if name != NODE_IDS]
        if "format" not in names:
            if len(names) != 1:
                raise ValueError(f"it holds the arrays {', '.join(names) or '(none)'}, not just W")
            return archive[names[0]], node_ids
    from scipy.sparse import load_npz

    matrix = load_npz(BytesIO(content))
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return matrix, node_ids


def _read_npy(content: bytes) -> tuple[Any, tuple[str, ...]]:
    if not content.startswith(b"\x93NUMPY"):
        raise ValueError("it is no .npy array")
    return np.load(BytesIO(content), allow_pickle=False), ()


def _read_text(content: bytes) -> tuple[Any, tuple[str, ...]]:
    """Read rows of numbers between commas, semicolons, tabs or spaces; # starts a comment."""
    lines = [line.split("#")[0].strip() for line in content.decode("utf-8-sig").splitlines()]
    rows = [line for line in lines if line]
    if not rows:
        raise ValueError("it holds no numbers")
    mark = next((mark for mark in ",;" if mark in rows[0]), None)
    return np.loadtxt(rows, delimiter=mark, ndmin=2), ()


def _read_mtx(content: bytes) -> tuple[Any, tuple[str, ...]]:
    from scipy.io import mmread

    return mmread(BytesIO(content)), ()


READERS: dict[str, Callable[[bytes], tuple[Any, tuple[str, ...]]]] = {
    "npz": _read_npz,
    "npy": _read_npy,
    "text": _read_text,
    "mtx": _read_mtx,
}


def read_matrix(content: bytes, form: str) -> tuple[Any, tuple[str, ...]]:
    """Return the dense or sparse matrix in ``content``, and the node ids stored with it, if any.

    Raises:
        UsageError: The content holds pickled Python objects.
        ValueError: The content is damaged or of another format (zipfile.BadZipFile, KeyError, …).
    """
    try:
        return READERS[form](content)
    except ValueError as error:
        # NumPy speaks of pickles both for object arrays and for members that are pickles.
        if "pickle" not in str(error):
            raise
        raise UsageError(
            "it holds Python objects (a pickle), which are never read because they can run code; "
            "save the matrix with numpy.savez(file, W) or scipy.sparse.save_npz(file, W)."
        ) from error


def _write_npz(weights: Weights, node_ids: Sequence[str]) -> bytes:
    matrix, buffer = weights.matrix, BytesIO()
    # The members are those of scipy.sparse.save_npz, which reads past the node ids.
    members: dict[str, Any] = {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape),
        "format": np.array(b"csr"),
        "_is_array": np.array(True),
    }
    if node_ids:
        members[NODE_IDS] = np.array(node_ids)
    np.savez_compressed(buffer, **members)
    return buffer.getvalue()


def _write_npy(weights: Weights, node_ids: Sequence[str]) -> bytes:
    buffer = BytesIO()
    np.save(buffer, weights.matrix.toarray(), allow_pickle=False)
    return buffer.getvalue()


def _write_text(weights: Weights, node_ids: Sequence[str]) -> bytes:
    comments = [f"# {line}\n" for line in _comment(weights, node_ids).splitlines()]
    return "".join(comments).encode() + _rows(weights, " ")


def _write_csv(weights: Weights, node_ids: Sequence[str]) -> bytes:
    return _rows(weights, ",")


def _write_mtx(weights: Weights, node_ids: Sequence[str]) -> bytes:
    from scipy.io import mmwrite

    buffer = BytesIO()
    mmwrite(buffer, weights.matrix, comment=_comment(weights, node_ids), precision=17)
    return buffer.getvalue()


def _comment(weights: Weights, node_ids: Sequence[str]) -> str:
    smallest = round(weights.lambda_min, 6) + 0.0  # never -0
    facts = f"{weights.name}, rho = {weights.rho_text}, smallest eigenvalue {smallest:.6f}"
    return "\n".join([facts, *(f"agent {i} = node {node}" for i, node in enumerate(node_ids))])


def _rows(weights: Weights, mark: str) -> bytes:
    # repr() gives the shortest digits that read back as the same float64.
    dense = weights.matrix.toarray()
    return "".join(mark.join(map(repr, row.tolist())) + "\n" for row in dense).encode()


WRITERS: dict[str, Callable[[Weights, Sequence[str]], bytes]] = {
    ".npz": _write_npz,
    ".npy": _write_npy,
    ".txt": _write_text,
    ".csv": _write_csv,
    ".mtx": _write_mtx,
}
